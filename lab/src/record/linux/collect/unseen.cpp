#include "record/linux/collect/unseen.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <fstream>
#include <iterator>
#include <map>
#include <span>
#include <string_view>
#include <utility>

#include <elf.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "record/linux/collect/file_descriptor.hpp"

namespace blockyard::record {
namespace {

struct Mark {
  std::string_view text;
  const char* allocator;
};

// Symbols that an allocator keeps in whatever it is linked into. A name that ends with '*' is a beginning.
constexpr Mark symbol_marks[] = {
    {"mallctl", "jemalloc"},      {"je_mallctl", "jemalloc"},          {"_rjem_mallctl", "jemalloc"},
    {"_rjem_malloc", "jemalloc"}, {"mi_malloc", "mimalloc"},           {"mi_malloc_aligned", "mimalloc"},
    {"tc_malloc", "tcmalloc"},    {"_ZN8tcmalloc*", "tcmalloc"},       {"_ZN15partition_alloc*", "PartitionAlloc"},
    {"rpmalloc", "rpmalloc"},     {"_ZN8snmalloc*", "snmalloc"},       {"sn_rust_alloc", "snmalloc"},
    {"_ZN5scudo*", "scudo"},      {"moz_arena_malloc", "mozjemalloc"}, {"runtime.mallocgc", "Go's allocator"},
};

// What stands in their messages.
constexpr Mark message_marks[] = {
    {"<jemalloc>: ", "jemalloc"},           {"mimalloc: ", "mimalloc"},
    {"tcmalloc/tcmalloc.cc", "tcmalloc"},   {"src/tcmalloc.cc", "tcmalloc"},
    {"partition_alloc/", "PartitionAlloc"},
};

// A file's bytes.
class MappedFile {
 public:
  explicit MappedFile(const std::string& path) {
    const FileDescriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
    struct stat facts {};
    if (!file.is_open() || fstat(file.get(), &facts) != 0 || !S_ISREG(facts.st_mode) || facts.st_size <= 0) return;
    const auto size = static_cast<std::size_t>(facts.st_size);
    void* memory = mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file.get(), 0);
    if (memory != MAP_FAILED) bytes_ = {static_cast<const char*>(memory), size};
  }
  ~MappedFile() {
    if (!bytes_.empty()) munmap(const_cast<char*>(bytes_.data()), bytes_.size());
  }
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  std::string_view bytes() const { return bytes_; }

  /// `count` records of a type from an offset on; none where the file is shorter.
  template <typename Record>
  std::span<const Record> at(std::uint64_t offset, std::uint64_t count) const {
    if (offset > bytes_.size() || count > (bytes_.size() - offset) / sizeof(Record)) return {};
    return {reinterpret_cast<const Record*>(bytes_.data() + offset), count};
  }

 private:
  std::string_view bytes_;
};

const char* allocator_of(std::string_view symbol) {
  const auto is_it = [symbol](const Mark& mark) {
    if (mark.text.ends_with('*')) return symbol.starts_with(mark.text.substr(0, mark.text.size() - 1));
    return symbol == mark.text;
  };
  const auto* const found = std::find_if(std::begin(symbol_marks), std::end(symbol_marks), is_it);
  return found == std::end(symbol_marks) ? nullptr : found->allocator;
}

// By a symbol table's functions that are defined there.
const char* allocator_by_symbols(const MappedFile& file, const Elf64_Shdr& table, const Elf64_Shdr& strings) {
  const std::string_view texts(file.bytes().substr(std::min<std::size_t>(strings.sh_offset, file.bytes().size())));
  for (const Elf64_Sym& symbol : file.at<Elf64_Sym>(table.sh_offset, table.sh_size / sizeof(Elf64_Sym))) {
    const unsigned type = ELF64_ST_TYPE(symbol.st_info);
    if (symbol.st_shndx == SHN_UNDEF || (type != STT_FUNC && type != STT_OBJECT)) continue;
    if (symbol.st_name >= strings.sh_size || symbol.st_name >= texts.size()) continue;
    const char* const name = texts.data() + symbol.st_name;
    const std::size_t room = texts.size() - symbol.st_name;
    const char* const found = allocator_of({name, strnlen(name, room)});
    if (found != nullptr) return found;
  }
  return nullptr;
}

std::string file_name(const std::string& path) { return path.substr(path.rfind('/') + 1); }

std::string mebibytes(std::uint64_t bytes) { return std::to_string(bytes >> 20) + " MiB"; }

constexpr const char* what_to_do =
    "; build it without that allocator, or report its blocks through blockyard/journal.h";

}  // namespace

std::string carried_allocator(const std::string& path, bool look_for_messages) {
  const MappedFile file(path);
  const auto headers = file.at<Elf64_Ehdr>(0, 1);
  if (headers.empty() || std::memcmp(headers[0].e_ident, ELFMAG, SELFMAG) != 0) return {};
  const auto sections = file.at<Elf64_Shdr>(headers[0].e_shoff, headers[0].e_shnum);
  bool has_symbols = false;
  for (const Elf64_Shdr& section : sections) {
    if ((section.sh_type != SHT_SYMTAB && section.sh_type != SHT_DYNSYM) || section.sh_link >= sections.size())
      continue;
    has_symbols |= section.sh_type == SHT_SYMTAB;
    const char* const found = allocator_by_symbols(file, section, sections[section.sh_link]);
    if (found != nullptr) return found;
  }
  if (has_symbols || !look_for_messages) return {};
  for (const Mark& mark : message_marks) {
    if (file.bytes().find(mark.text) != std::string_view::npos) return mark.allocator;
  }
  return {};
}

Unseen::Unseen(std::string program, std::string hooked, std::string own, bool own_is_hooked)
    : program_(std::move(program)), hooked_(std::move(hooked)), own_(std::move(own)), own_is_hooked_(own_is_hooked) {}

void Unseen::look(pid_t pid) {
  const std::string folder = "/proc/" + std::to_string(pid);
  std::ifstream maps(folder + "/maps");
  for (std::string line; std::getline(maps, line);) {
    // ADDRESSES r-xp OFFSET DEVICE INODE PATH
    const std::size_t path = line.find('/');
    const std::size_t rights = line.find(' ');
    if (path != std::string::npos && rights + 3 < line.size() && line[rights + 3] == 'x')
      files_.insert(line.substr(path));
  }
  std::ifstream status(folder + "/status");
  for (std::string line; std::getline(status, line);) {
    constexpr std::string_view key = "RssAnon:";
    if (!line.starts_with(key)) continue;
    most_private_bytes_ = std::max<std::uint64_t>(most_private_bytes_, std::stoull(line.substr(key.size())) << 10);
  }
}

std::vector<std::string> Unseen::sentences(std::uint64_t allocations, std::uint64_t most_live_bytes,
                                           bool is_fresh) const {
  static std::map<std::string, std::string> known;  // what each file carries
  std::vector<std::string> said;
  for (const std::string& file : files_) {
    const std::string name = file_name(file);
    if (name == hooked_ || name.starts_with("libblockyard-")) continue;
    const auto [found, is_new] = known.try_emplace(file);
    if (is_new) found->second = carried_allocator(file, file == program_);
    const std::string& allocator = found->second;
    if (name == own_) {
      const std::string what = name + " has an allocator of its own" + (allocator.empty() ? "" : ", " + allocator);
      said.push_back(own_is_hooked_ ? what + ": what calls it was recorded, but not where the compiler put it in line"
                                    : what + ": what is allocated there was not recorded" + what_to_do);
    } else if (!allocator.empty()) {
      said.push_back(name + " carries " + allocator + ": what is allocated there was not recorded" + what_to_do);
    }
  }
  if (is_fresh && allocations == 0)
    said.push_back("no call of malloc was seen: this says nothing of how " + file_name(program_) + " allocates");
  constexpr std::uint64_t much = std::uint64_t{64} << 20;
  if (most_private_bytes_ > much + 4 * most_live_bytes) {
    said.push_back("of " + mebibytes(most_private_bytes_) + " of private memory, recorded blocks held at most " +
                   mebibytes(most_live_bytes) +
                   ": the rest came from elsewhere than malloc, from an allocator or a runtime of the program's own");
  }
  return said;
}

}  // namespace blockyard::record
