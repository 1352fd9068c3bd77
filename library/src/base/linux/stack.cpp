// Stacks come from the unwinder, names from the loader and from the symbol table in the file.
#include "base/stack.hpp"

#include <dlfcn.h>
#include <elf.h>
#include <execinfo.h>
#include <fcntl.h>
#include <link.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

// abi::__cxa_demangle, null in a C program under the preload.
extern "C" char* cxx_demangle(const char* name, char* text, std::size_t* room, int* status) __asm__("__cxa_demangle")
    __attribute__((weak));

namespace blockyard::base {

// What base/own_code.hpp left of each source; the ends of the section come from the linker.
struct OwnCode {
  std::int32_t begin;  // distances from where they stand
  std::int32_t end;
};
extern "C" {
extern const OwnCode own_code_begin[] __asm__("__start_blockyard_code") __attribute__((weak, visibility("hidden")));
extern const OwnCode own_code_end[] __asm__("__stop_blockyard_code") __attribute__((weak, visibility("hidden")));
}

namespace {

// A file mapped into memory.
class MappedFile {
 public:
  explicit MappedFile(const char* path) {
    const int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0) {
      return;
    }
    struct stat facts {};
    if (fstat(file, &facts) == 0 && facts.st_size > 0) {
      bytes_ = static_cast<std::size_t>(facts.st_size);
      void* const mapped = mmap(nullptr, bytes_, PROT_READ, MAP_PRIVATE, file, 0);
      data_ = mapped == MAP_FAILED ? nullptr : static_cast<const char*>(mapped);
    }
    close(file);
  }
  ~MappedFile() {
    if (data_ != nullptr) {
      munmap(const_cast<char*>(data_), bytes_);
    }
  }
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  /// `count` records at `offset`, or nullptr if the file is too short.
  template <class T>
  const T* at(std::uint64_t offset, std::uint64_t count = 1) const {
    if (data_ == nullptr || offset > bytes_ || count > (bytes_ - offset) / sizeof(T)) {
      return nullptr;
    }
    return reinterpret_cast<const T*>(data_ + offset);
  }

 private:
  const char* data_ = nullptr;
  std::size_t bytes_ = 0;
};

struct Found {
  char name[512] = {};
  std::uint64_t offset = 0;
};

// Looks up `address`, relative to where the object was loaded, in the file's full symbol table, which has static
// functions too.
bool find_in_file(const char* path, std::uint64_t address, Found& found) {
  const MappedFile file(path);
  const auto* const header = file.at<ElfW(Ehdr)>(0);
  if (header == nullptr || std::memcmp(header->e_ident, ELFMAG, SELFMAG) != 0) {
    return false;
  }
  const auto* const sections = file.at<ElfW(Shdr)>(header->e_shoff, header->e_shnum);
  if (sections == nullptr) {
    return false;
  }
  for (unsigned i = 0; i < header->e_shnum; ++i) {
    const ElfW(Shdr)& section = sections[i];
    if (section.sh_type != SHT_SYMTAB || section.sh_link >= header->e_shnum) {
      continue;
    }
    const std::uint64_t count = section.sh_size / sizeof(ElfW(Sym));
    const auto* const symbols = file.at<ElfW(Sym)>(section.sh_offset, count);
    const ElfW(Shdr)& names = sections[section.sh_link];
    const char* const text = file.at<char>(names.sh_offset, names.sh_size);
    if (symbols == nullptr || text == nullptr) {
      continue;
    }
    for (std::uint64_t k = 0; k < count; ++k) {
      const ElfW(Sym)& symbol = symbols[k];
      if ((symbol.st_info & 0xf) == STT_FUNC && symbol.st_name < names.sh_size && address >= symbol.st_value &&
          address - symbol.st_value < symbol.st_size) {
        std::snprintf(found.name, sizeof found.name, "%.*s", static_cast<int>(names.sh_size - symbol.st_name),
                      text + symbol.st_name);
        found.offset = address - symbol.st_value;
        return true;
      }
    }
  }
  return false;
}

}  // namespace

std::size_t capture_stack(void** addresses, std::size_t room) {
  const int count = backtrace(addresses, static_cast<int>(room));
  return count < 0 ? 0 : static_cast<std::size_t>(count);
}

bool is_own_code(const void* address) {
  const auto distance = [call = reinterpret_cast<std::intptr_t>(address) - 1](const std::int32_t& from) {
    return call - reinterpret_cast<std::intptr_t>(&from) - from;
  };
  for (const OwnCode* part = own_code_begin; part != own_code_end; ++part) {
    if (distance(part->begin) >= 0 && distance(part->end) < 0) {
      return true;
    }
  }
  return false;
}

void describe_address(const void* address, char* text, std::size_t room) {
  // A return address may belong to the next function already; the call is before it.
  const char* const call = static_cast<const char*>(address) - 1;
  Dl_info info{};
  void* extra = nullptr;
  if (dladdr1(call, &info, &extra, RTLD_DL_LINKMAP) == 0 || extra == nullptr) {
    std::snprintf(text, room, "%p", address);
    return;
  }
  const auto* const object = static_cast<const link_map*>(extra);
  const std::uint64_t relative = reinterpret_cast<std::uintptr_t>(call) - object->l_addr;
  const bool is_program = object->l_name == nullptr || object->l_name[0] == 0;
  const char* const path = is_program ? "/proc/self/exe" : object->l_name;
  const char* const shown = info.dli_fname == nullptr ? path : info.dli_fname;
  Found found;
  if (!find_in_file(path, relative, found)) {
    if (info.dli_sname == nullptr) {
      std::snprintf(text, room, "%s+0x%llx", shown, static_cast<unsigned long long>(relative));
      return;
    }
    std::snprintf(found.name, sizeof found.name, "%s", info.dli_sname);
    found.offset = static_cast<std::uint64_t>(call - static_cast<const char*>(info.dli_saddr));
  }
  int status = 0;
  char* const readable = cxx_demangle != nullptr ? cxx_demangle(found.name, nullptr, nullptr, &status) : nullptr;
  std::snprintf(text, room, "%s+0x%llx (%s)", readable != nullptr ? readable : found.name,
                static_cast<unsigned long long>(found.offset) + 1, shown);
  std::free(readable);
}

}  // namespace blockyard::base
