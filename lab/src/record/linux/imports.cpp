#include "record/linux/imports.hpp"

#include <algorithm>
#include <cstdint>
#include <cstring>

#include <elf.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "record/channel.hpp"

namespace blockyard::record {
namespace {

#if defined(__x86_64__)
constexpr unsigned import_types[] = {R_X86_64_JUMP_SLOT, R_X86_64_GLOB_DAT, R_X86_64_64, R_X86_64_RELATIVE};
#elif defined(__aarch64__)
constexpr unsigned import_types[] = {R_AARCH64_JUMP_SLOT, R_AARCH64_GLOB_DAT, R_AARCH64_ABS64, R_AARCH64_RELATIVE};
#endif

constexpr std::uint64_t down_to_page(std::uint64_t address) { return address & ~std::uint64_t{page_bytes - 1}; }

bool is_import(const ElfW(Rela) & relocation) {
  for (const unsigned type : import_types) {
    if (ELF64_R_TYPE(relocation.r_info) == type) return true;
  }
  return false;
}

// Whether the loader has write-protected the place: it leaves out a last page that has other data, too.
bool is_protected(const dl_phdr_info& object, std::uint64_t address) {
  for (int i = 0; i < object.dlpi_phnum; ++i) {
    const ElfW(Phdr)& segment = object.dlpi_phdr[i];
    const std::uint64_t begin = object.dlpi_addr + segment.p_vaddr;
    if (segment.p_type == PT_GNU_RELRO && address >= down_to_page(begin) &&
        address < down_to_page(begin + segment.p_memsz))
      return true;
  }
  return false;
}

bool is_writable(const dl_phdr_info& object, std::uint64_t address) {
  for (int i = 0; i < object.dlpi_phnum; ++i) {
    const ElfW(Phdr)& segment = object.dlpi_phdr[i];
    const std::uint64_t begin = object.dlpi_addr + segment.p_vaddr;
    if (segment.p_type == PT_LOAD && (segment.p_flags & PF_W) != 0 && address >= begin &&
        address + sizeof(void*) <= begin + segment.p_memsz)
      return true;
  }
  return false;
}

void* const* find(std::span<const Redirection> redirections, void* from) {
  for (const Redirection& one : redirections) {
    if (one.from == from) return &one.to;
  }
  return nullptr;
}

/// The names of what an object imports.
struct Names {
  const ElfW(Sym) * symbols = nullptr;
  const char* strings = nullptr;
};

// Until a function's first call its import leads into the object's own code, which looks it up.
void* const* find_unresolved(const dl_phdr_info& object, const Names& names, const ElfW(Rela) & relocation, void* value,
                             std::span<const Redirection> redirections) {
  if (ELF64_R_TYPE(relocation.r_info) != import_types[0] || names.symbols == nullptr || names.strings == nullptr)
    return nullptr;
  const ElfW(Sym)& symbol = names.symbols[ELF64_R_SYM(relocation.r_info)];
  const auto address = reinterpret_cast<std::uint64_t>(value);
  bool is_inside = false;
  for (int i = 0; i < object.dlpi_phnum; ++i) {
    const ElfW(Phdr)& segment = object.dlpi_phdr[i];
    const std::uint64_t begin = object.dlpi_addr + segment.p_vaddr;
    is_inside |= segment.p_type == PT_LOAD && (segment.p_flags & PF_X) != 0 && address >= begin &&
                 address < begin + segment.p_memsz;
  }
  for (const Redirection& one : redirections) {
    if (is_inside && std::strcmp(one.name, names.strings + symbol.st_name) == 0) return &one.to;
  }
  return nullptr;
}

std::size_t rewrite_table(const dl_phdr_info& object, const Names& names, const ElfW(Rela) * table, std::size_t count,
                          std::span<const Redirection> redirections) {
  std::size_t changed = 0;
  for (std::size_t i = 0; i < count; ++i) {
    if (!is_import(table[i])) continue;
    const std::uint64_t place = object.dlpi_addr + table[i].r_offset;
    if (place % sizeof(void*) != 0 || !is_writable(object, place)) continue;
    void** const slot = reinterpret_cast<void**>(place);
    void* const value = __atomic_load_n(slot, __ATOMIC_RELAXED);
    void* const* to = find(redirections, value);
    if (to == nullptr) to = find_unresolved(object, names, table[i], value, redirections);
    if (to == nullptr) continue;
    void* const page = reinterpret_cast<void*>(down_to_page(place));
    const bool was_protected = is_protected(object, place);
    if (was_protected && mprotect(page, page_bytes, PROT_READ | PROT_WRITE) != 0) continue;
    __atomic_store_n(slot, *to, __ATOMIC_RELEASE);
    if (was_protected) mprotect(page, page_bytes, PROT_READ);
    ++changed;
  }
  return changed;
}

}  // namespace

namespace {

constexpr std::size_t most_text_bytes = std::size_t{8} << 20;  // Linux allows 65,530 mappings by default

std::uint64_t hexadecimal(const char*& at) {
  std::uint64_t number = 0;
  for (;; ++at) {
    const char digit = *at;
    if (digit >= '0' && digit <= '9') {
      number = number << 4 | static_cast<unsigned>(digit - '0');
    } else if (digit >= 'a' && digit <= 'f') {
      number = number << 4 | static_cast<unsigned>(digit - 'a' + 10);
    } else {
      return number;
    }
  }
}

}  // namespace

void WritableMemory::look() {
  const int file = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
  if (file < 0) return;
  void* memory =
      mmap(nullptr, most_text_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory != MAP_FAILED) {
    text_ = static_cast<char*>(memory);
    for (ssize_t got = 1; got > 0 && bytes_ + 1 < most_text_bytes;) {
      got = read(file, text_ + bytes_, most_text_bytes - 1 - bytes_);
      if (got > 0) bytes_ += static_cast<std::size_t>(got);
    }
  }
  close(file);
}

WritableMemory::~WritableMemory() {
  if (text_ != nullptr) munmap(text_, most_text_bytes);
}

bool WritableMemory::contains(std::uint64_t address) {
  if (text_ == nullptr) look();
  // BEGIN-END rwxp ...
  for (const char* at = text_; at != nullptr && *at != '\0';) {
    const std::uint64_t begin = hexadecimal(at);
    const std::uint64_t end = hexadecimal(++at);
    if (address >= begin && address < end) return at[2] == 'w';
    at = std::strchr(at, '\n');
    if (at != nullptr) ++at;
  }
  return false;
}

bool is_being_loaded(const dl_phdr_info& object, WritableMemory& writable) {
  for (int i = 0; i < object.dlpi_phnum; ++i) {
    const ElfW(Phdr)& segment = object.dlpi_phdr[i];
    const std::uint64_t begin = object.dlpi_addr + segment.p_vaddr;
    if (segment.p_type == PT_GNU_RELRO && is_protected(object, begin)) return writable.contains(begin);
  }
  return false;
}

std::size_t rewrite_imports(const dl_phdr_info& object, std::span<const Redirection> redirections) {
  const ElfW(Dyn)* entry = nullptr;
  for (int i = 0; i < object.dlpi_phnum; ++i) {
    if (object.dlpi_phdr[i].p_type == PT_DYNAMIC)
      entry = reinterpret_cast<const ElfW(Dyn)*>(object.dlpi_addr + object.dlpi_phdr[i].p_vaddr);
  }
  std::uint64_t tables[2] = {};  // of data, of calls
  std::uint64_t bytes[2] = {};
  // The loader relocates these pointers in place, except in the kernel's own object.
  const auto at = [&](std::uint64_t value) { return value < object.dlpi_addr ? value + object.dlpi_addr : value; };
  Names names;
  for (; entry != nullptr && entry->d_tag != DT_NULL; ++entry) {
    const std::uint64_t value = entry->d_un.d_ptr;
    if (entry->d_tag == DT_SYMTAB) names.symbols = reinterpret_cast<const ElfW(Sym)*>(at(value));
    if (entry->d_tag == DT_STRTAB) names.strings = reinterpret_cast<const char*>(at(value));
    if (entry->d_tag == DT_RELA) tables[0] = value;
    if (entry->d_tag == DT_RELASZ) bytes[0] = value;
    if (entry->d_tag == DT_JMPREL) tables[1] = value;
    if (entry->d_tag == DT_PLTRELSZ) bytes[1] = value;
  }
  std::size_t changed = 0;
  for (int i = 0; i < 2; ++i) {
    if (tables[i] == 0) continue;
    changed += rewrite_table(object, names, reinterpret_cast<const ElfW(Rela)*>(at(tables[i])),
                             bytes[i] / sizeof(ElfW(Rela)), redirections);
  }
  return changed;
}

#if defined(__x86_64__)

namespace {

constexpr std::size_t bridge_bytes = 16;
constexpr std::size_t bridges_bytes = 2 * page_bytes;

// Memory within reach of all of [begin, end), or nullptr.
std::byte* memory_near(std::uint64_t begin, std::uint64_t end) {
  constexpr std::uint64_t reach = (std::uint64_t{1} << 31) - (std::uint64_t{1} << 20);
  constexpr std::uint64_t step = std::uint64_t{1} << 16;
  if (end - begin > reach / 2) return nullptr;
  const std::uint64_t lowest = end > reach ? end - reach : step;
  // Below: above, a program's heap grows.
  for (std::uint64_t at = down_to_page(begin) - step; at > lowest && at < begin; at -= step) {
    void* page = mmap(reinterpret_cast<void*>(at), bridges_bytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    if (page == reinterpret_cast<void*>(at)) return static_cast<std::byte*>(page);
    if (page != MAP_FAILED) munmap(page, bridges_bytes);
  }
  return nullptr;
}

// jmp *(%rip), and behind it where to.
void build_bridge(std::byte* at, void* to) {
  constexpr unsigned char jump[] = {0xff, 0x25, 0x02, 0x00, 0x00, 0x00, 0x0f, 0x0b};
  std::memcpy(at, jump, sizeof jump);
  std::memcpy(at + sizeof jump, &to, sizeof to);
}

// A call or a jump is one byte and the distance from behind it. That some other four bytes are just the distance to an
// allocation function, behind just such a byte, happens once in 2^39 places.
template <typename Visit>
void for_calls(unsigned char* begin, unsigned char* end, std::span<const Redirection> redirections,
               const std::byte* bridges, Visit visit) {
  const void* lowest = redirections[0].from;
  const void* highest = lowest;
  for (const Redirection& one : redirections) {
    if (one.from < lowest) lowest = one.from;
    if (one.from > highest) highest = one.from;
  }
  for (unsigned char* at = begin; at + 5 <= end; ++at) {
    if (*at != 0xe8 && *at != 0xe9) continue;
    std::int32_t distance = 0;
    std::memcpy(&distance, at + 1, sizeof distance);
    const void* const target = at + 5 + distance;
    if (target < lowest || target > highest) continue;
    for (std::size_t i = 0; i < redirections.size(); ++i) {
      if (redirections[i].from != target) continue;
      const auto to = reinterpret_cast<const unsigned char*>(bridges + i * bridge_bytes) - (at + 5);
      visit(at + 1, distance, static_cast<std::int32_t>(to));
      break;
    }
  }
}

// Calls `visit` with the beginning and the end of each segment with code.
template <typename Visit>
void for_code(const dl_phdr_info& object, Visit visit) {
  for (int i = 0; i < object.dlpi_phnum; ++i) {
    const ElfW(Phdr)& segment = object.dlpi_phdr[i];
    if (segment.p_type != PT_LOAD || (segment.p_flags & PF_X) == 0) continue;
    const std::uint64_t from = object.dlpi_addr + segment.p_vaddr;
    visit(reinterpret_cast<unsigned char*>(from), reinterpret_cast<unsigned char*>(from + segment.p_memsz));
  }
}

// nullptr where there is no room, or no right.
std::byte* build_bridges(const dl_phdr_info& object, std::span<const Redirection> redirections) {
  if (redirections.empty() || redirections.size() * bridge_bytes > bridges_bytes) return nullptr;
  std::uint64_t begin = ~std::uint64_t{0};
  std::uint64_t end = 0;
  for_code(object, [&](unsigned char* from, unsigned char* to) {
    begin = std::min(begin, reinterpret_cast<std::uint64_t>(from));
    end = std::max(end, reinterpret_cast<std::uint64_t>(to));
  });
  std::byte* const bridges = begin < end ? memory_near(begin, end) : nullptr;
  if (bridges == nullptr) return nullptr;
  for (std::size_t i = 0; i < redirections.size(); ++i) build_bridge(bridges + i * bridge_bytes, redirections[i].to);
  if (mprotect(bridges, bridges_bytes, PROT_READ | PROT_EXEC) == 0) return bridges;
  munmap(bridges, bridges_bytes);
  return nullptr;
}

}  // namespace

std::size_t rewrite_calls(const dl_phdr_info& object, std::span<const Redirection> redirections) {
  std::byte* const bridges = build_bridges(object, redirections);
  if (bridges == nullptr) return 0;
  std::size_t changed = 0;
  for_code(object, [&](unsigned char* from, unsigned char* to) {
    void* const first = reinterpret_cast<void*>(down_to_page(reinterpret_cast<std::uint64_t>(from)));
    const auto bytes = static_cast<std::size_t>(to - static_cast<unsigned char*>(first));
    if (mprotect(first, bytes, PROT_READ | PROT_WRITE | PROT_EXEC) != 0) return;
    for_calls(from, to, redirections, bridges, [&](unsigned char* at, std::int32_t, std::int32_t distance) {
      std::memcpy(at, &distance, sizeof distance);
      ++changed;
    });
    mprotect(first, bytes, PROT_READ | PROT_EXEC);
  });
  if (changed == 0) munmap(bridges, bridges_bytes);
  return changed;
}

std::span<const CodeChange> plan_calls(const dl_phdr_info& object, std::span<const Redirection> redirections) {
  constexpr std::size_t most = std::size_t{1} << 20;
  std::byte* const bridges = build_bridges(object, redirections);
  if (bridges == nullptr) return {};
  void* const memory = mmap(nullptr, most * sizeof(CodeChange), PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  std::size_t count = 0;
  auto* const changes = memory == MAP_FAILED ? nullptr : static_cast<CodeChange*>(memory);
  for_code(object, [&](unsigned char* from, unsigned char* to) {
    for_calls(from, to, redirections, bridges, [&](unsigned char* at, std::int32_t before, std::int32_t after) {
      if (changes != nullptr && count < most) changes[count++] = {reinterpret_cast<std::uint64_t>(at), before, after};
    });
  });
  if (count == 0) munmap(bridges, bridges_bytes);
  if (changes == nullptr) return {};
  const std::size_t used = (count * sizeof(CodeChange) + page_bytes - 1) / page_bytes * page_bytes;
  munmap(reinterpret_cast<std::byte*>(changes) + used, most * sizeof(CodeChange) - used);
  return {changes, count};
}

#else

std::size_t rewrite_calls(const dl_phdr_info&, std::span<const Redirection>) { return 0; }
std::span<const CodeChange> plan_calls(const dl_phdr_info&, std::span<const Redirection>) { return {}; }

#endif

}  // namespace blockyard::record
