#include "names/resolver.hpp"

#include <elfutils/libdwelf.h>
#include <elfutils/libdwfl.h>
#include <fcntl.h>
#include <gelf.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <numeric>
#include <optional>
#include <system_error>

#include "journal/stacks.hpp"
#include "names/compile_units.hpp"
#include "names/demangle.hpp"
#include "names/pe_file.hpp"
#include "names/plain_sections.hpp"
#include "names/symbol_table.hpp"
#include "unwind/frame_info.hpp"

namespace blockyard::names {
namespace {

constexpr const char* system_folders = ":.debug:/usr/lib/debug";  // as gdb looks: beside the file, then there

/// What libdwfl calls while it looks for a module's debug file.
struct Search {
  DebugFiles* files;
  std::string build_id;
  std::string main_file;
  std::string problem;  ///< of a debug file that was found
};

/// `file` itself, or what takes its place because of sections that libdw can't read; -1 with `problem` set.
int readable(int file, std::string& problem) {
  if (file < 0 || !has_zstd_sections(file)) return file;
  const int plain = with_plain_sections(file, problem);
  ::close(file);
  return plain;
}

int find_debug_file(Dwfl_Module* module, void** data, const char* name, Dwarf_Addr base, const char* file,
                    const char* link, GElf_Word checksum, char** found) {
  auto* const search = static_cast<Search*>(*data);
  std::string unheard;
  if (search != nullptr && !search->build_id.empty()) {
    for (const std::string& path : search->files->with_build_id(search->build_id)) {
      if (path == search->main_file) continue;
      const int opened = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
      if (opened < 0) continue;
      *found = ::strdup(path.c_str());
      return readable(opened, search->problem);
    }
  }
  const int opened = dwfl_standard_find_debuginfo(module, data, name, base, file, link, checksum, found);
  return readable(opened, search == nullptr ? unheard : search->problem);
}

/// A module as libdwfl sees it.
class Module {
 public:
  Module(const std::string& file, const std::string& debug_path, Search search)
      : search_(std::move(search)), debug_path_(debug_path), debug_path_text_(debug_path_.data()) {
    callbacks_.find_elf = dwfl_build_id_find_elf;
    callbacks_.find_debuginfo = find_debug_file;
    callbacks_.section_address = dwfl_offline_section_address;
    callbacks_.debuginfo_path = &debug_path_text_;
    session_.reset(dwfl_begin(&callbacks_));
    if (session_ == nullptr) return;
    dwfl_report_begin(session_.get());
    // libdwfl closes what it reports; it opens a file that needs no copy by itself.
    int plain = ::open(file.c_str(), O_RDONLY | O_CLOEXEC);
    if (plain >= 0 && !has_zstd_sections(plain)) {
      ::close(plain);
      plain = -1;
    }
    module_ = dwfl_report_elf(session_.get(), file.c_str(), file.c_str(), readable(plain, search_.problem), 0, true);
    dwfl_report_end(session_.get(), nullptr, nullptr);
    void** data = nullptr;
    if (module_ != nullptr && dwfl_module_info(module_, &data, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr)) {
      *data = &search_;
    }
  }
  Module(const Module&) = delete;
  Module& operator=(const Module&) = delete;

  Dwfl_Module* get() { return module_; }

  /// The module's DWARF, or null. `bias` is what its addresses lack. A dwz file in the user's folders is connected.
  Dwarf* dwarf(std::uint64_t& bias) {
    Dwarf_Addr found = 0;
    Dwarf* dwarf = dwfl_module_getdwarf(module_, &found);
    bias = found;
    if (dwarf != nullptr && dwarf_getalt(dwarf) == nullptr) connect_alternate(dwarf);
    return dwarf;
  }
  /// Why debug information that there is can't be read; else empty.
  const std::string& problem() const { return search_.problem; }
  /// The alternate debug file that the DWARF refers to and that was not found; empty when there is none such.
  const std::string& missing_alternate() const { return missing_alternate_; }

 private:
  struct EndSession {
    void operator()(Dwfl* session) const { dwfl_end(session); }
  };
  struct EndDwarf {
    void operator()(Dwarf* dwarf) const { dwarf_end(dwarf); }
  };

  void connect_alternate(Dwarf* dwarf) {
    const char* name = nullptr;
    const void* id = nullptr;
    const ssize_t size = dwelf_dwarf_gnu_debugaltlink(dwarf, &name, &id);
    if (size <= 0) return;
    std::string text;
    for (ssize_t i = 0; i < size; ++i) {
      constexpr char digits[] = "0123456789abcdef";
      const unsigned char byte = static_cast<const unsigned char*>(id)[i];
      text += digits[byte >> 4];
      text += digits[byte & 15];
    }
    for (const std::string& path : search_.files->with_build_id(text)) {
      alternate_file_ = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
      if (alternate_file_ < 0) continue;
      alternate_.reset(dwarf_begin(alternate_file_, DWARF_C_READ));
      if (alternate_ != nullptr) {
        dwarf_setalt(dwarf, alternate_.get());
        return;
      }
      ::close(alternate_file_);
      alternate_file_ = -1;
    }
    missing_alternate_ = name;
  }

  Search search_;
  std::string debug_path_;
  char* debug_path_text_;
  Dwfl_Callbacks callbacks_{};
  std::unique_ptr<Dwarf, EndDwarf> alternate_;  // outlives the session, whose DWARF refers to it
  int alternate_file_ = -1;
  std::string missing_alternate_;
  std::unique_ptr<Dwfl, EndSession> session_;
  Dwfl_Module* module_ = nullptr;

 public:
  ~Module() {
    session_.reset();
    alternate_.reset();
    if (alternate_file_ >= 0) ::close(alternate_file_);
  }
};

/// Where functions begin, by the unwind tables that a file keeps when it is stripped.
class FunctionStarts {
 public:
  explicit FunctionStarts(Dwfl_Module* module) {
    GElf_Addr bias = 0;
    Elf* const elf = dwfl_module_getelf(module, &bias);
    std::size_t bytes = 0;
    std::size_t names = 0;
    const auto* const file = reinterpret_cast<const std::uint8_t*>(elf_rawfile(elf, &bytes));
    if (file == nullptr || elf_getshdrstrndx(elf, &names) != 0) return;
    GElf_Shdr section;
    for (Elf_Scn* at = nullptr; (at = elf_nextscn(elf, at)) != nullptr;) {
      if (gelf_getshdr(at, &section) == nullptr || section.sh_type == SHT_NOBITS || section.sh_offset >= bytes)
        continue;
      const char* const name = elf_strptr(elf, names, section.sh_name);
      if (name == nullptr || std::strcmp(name, ".eh_frame_hdr") != 0) continue;
      // One segment holds all tables, so their distances in the file are those in memory.
      tables_.header = file + section.sh_offset;
      tables_.tables_begin = file;
      tables_.tables_end = file + bytes;
      moved_ = reinterpret_cast<std::uint64_t>(tables_.header) - section.sh_addr - bias;
    }
  }

  /// 0 where the tables know no function at the address.
  std::uint64_t find(std::uint64_t address) const {
    const std::uint64_t begin = unwind::find_function(tables_, address + moved_);
    return begin == 0 ? 0 : begin - moved_;
  }

 private:
  unwind::Object tables_;
  std::uint64_t moved_ = 0;  ///< from an address of the module to where its byte would be in memory here
};

/// The file to read for a module: its own when the build-id is right, else a debug file of that build-id.
std::optional<std::string> choose_file(const std::string& path, const std::string& build_id, DebugFiles& files,
                                       std::string& problem) {
  const bool there = ::access(path.c_str(), R_OK) == 0;
  if (there && (build_id.empty() || build_id_of(path) == build_id)) return path;
  if (!build_id.empty()) {
    if (const auto& others = files.with_build_id(build_id); !others.empty()) return others.front();
    if (build_id.size() > 2) {
      const std::string system =
          "/usr/lib/debug/.build-id/" + build_id.substr(0, 2) + "/" + build_id.substr(2) + ".debug";
      if (build_id_of(system) == build_id) return system;
    }
  }
  if (!there) {
    problem = "the file is not on this machine";
  } else if (const std::string other = build_id_of(path); other.empty()) {
    problem = "the file there has no build-id, and the recorded one has " + build_id;
  } else {
    problem = "the file there is another build: build-id " + other + ", recorded " + build_id;
  }
  return std::nullopt;
}

}  // namespace

Resolver::Resolver(const Options& options) : options_(options), files_(options.debug_folders) {
  if (!options_.ask_servers) ::unsetenv("DEBUGINFOD_URLS");
}

Resolved Resolver::resolve(const std::string& path, const std::string& build_id,
                           std::span<const std::uint64_t> addresses) {
  Resolved result;
  result.functions.resize(addresses.size());
  const std::optional<std::string> file = choose_file(path, build_id, files_, result.problem);
  if (!file) return result;
  if (is_pe(*file)) return resolve_pe(*file, addresses);
  Module module(*file, system_folders, {&files_, build_id.empty() ? build_id_of(*file) : build_id, *file, {}});
  if (module.get() == nullptr) {
    result.problem = "the file can't be read: " + std::string(dwfl_errmsg(-1));
    return result;
  }
  std::uint64_t bias = 0;
  Dwarf* dwarf = module.dwarf(bias);
  CompileUnits units(dwarf);
  const SymbolTable symbols(module.get());
  const FunctionStarts starts(module.get());
  if (!units.empty()) {
    result.symbols = Symbols::lines;
  } else if (symbols.empty()) {
    result.problem = "the file has no symbols";
  } else {
    result.symbols = symbols.has_local() ? Symbols::symbols : Symbols::exports;
    result.problem = symbols.has_local() ? "the file has no debug information" : "the file is stripped";
  }
  if (!module.problem().empty()) result.problem = module.problem();
  // By address, so that each compile unit is met once.
  std::vector<std::size_t> order(addresses.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return addresses[a] < addresses[b]; });
  std::string missing_dwo;
  for (const std::size_t at : order) {
    Functions& functions = result.functions[at];
    if (CompileUnit* unit = units.find(addresses[at] - bias); unit != nullptr) {
      functions = unit->find(addresses[at] - bias);
      if (missing_dwo.empty()) missing_dwo = unit->missing_dwo();
    }
    if (!functions.empty() && !functions.back().name.empty()) continue;
    if (const SymbolTable::Symbol* symbol = symbols.find(addresses[at]); symbol != nullptr) {
      if (functions.empty()) functions.emplace_back();
      functions.back().name = demangle(symbol->name);
    } else if (const std::uint64_t begin = starts.find(addresses[at]); begin != 0) {
      if (functions.empty()) functions.emplace_back();
      functions.back().name = journal::place_name(begin);
    } else if (!functions.empty() && functions.back().line == 0) {
      functions.clear();
    }
  }
  if (!missing_dwo.empty()) {
    result.problem = "inlined functions are missing with " + missing_dwo;
  } else if (!module.missing_alternate().empty()) {
    result.problem = "names are missing with the file that dwz made, " + module.missing_alternate();
  }
  return result;
}

}  // namespace blockyard::names
