// Symbol lookup in the hash tables of loaded ELF objects (System V ABI, "Hash Table"; GNU's variant as in binutils).
#include "record/linux/symbols.hpp"

#include <cstdint>
#include <cstdio>
#include <cstring>

#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <unistd.h>

#include "record/linux/text.hpp"

namespace blockyard::record {
namespace {

constexpr std::uint16_t hidden_version = 0x8000;

/// The parts of an object's dynamic section that a lookup needs.
struct Tables {
  const ElfW(Sym) * symbols = nullptr;
  const char* strings = nullptr;
  const std::uint32_t* gnu_hash = nullptr;
  const std::uint32_t* hash = nullptr;
  const std::uint16_t* versions = nullptr;
  std::size_t strings_bytes = 0;
};

std::uint32_t gnu_hash_of(const char* name) {
  std::uint32_t hash = 5381;
  for (; *name != '\0'; ++name) hash = hash * 33 + static_cast<unsigned char>(*name);
  return hash;
}

std::uint32_t sysv_hash_of(const char* name) {
  std::uint32_t hash = 0;
  for (; *name != '\0'; ++name) {
    hash = (hash << 4) + static_cast<unsigned char>(*name);
    const std::uint32_t high = hash & 0xf0000000u;
    hash = (hash ^ (high >> 24)) & ~high;
  }
  return hash;
}

bool is_match(const Tables& tables, std::uint32_t index, const char* name) {
  const ElfW(Sym)& symbol = tables.symbols[index];
  const unsigned type = symbol.st_info & 0xf;
  const bool defined = symbol.st_shndx != SHN_UNDEF && symbol.st_value != 0;
  const bool callable = type == STT_FUNC || type == STT_GNU_IFUNC || type == STT_NOTYPE || type == STT_OBJECT;
  // A hidden version: only programs linked long ago may bind to it.
  const bool current = tables.versions == nullptr || (tables.versions[index] & hidden_version) == 0;
  return defined && callable && current && same_text(tables.strings + symbol.st_name, name);
}

const ElfW(Sym) * find_by_gnu_hash(const Tables& tables, const char* name) {
  const std::uint32_t bucket_count = tables.gnu_hash[0];
  const std::uint32_t first_symbol = tables.gnu_hash[1];
  const std::uint32_t bloom_words = tables.gnu_hash[2];
  const std::uint32_t bloom_shift = tables.gnu_hash[3];
  const auto* bloom = reinterpret_cast<const ElfW(Addr)*>(tables.gnu_hash + 4);
  const auto* buckets = reinterpret_cast<const std::uint32_t*>(bloom + bloom_words);
  const std::uint32_t* chains = buckets + bucket_count;
  if (bucket_count == 0 || bloom_words == 0) return nullptr;
  const std::uint32_t hash = gnu_hash_of(name);
  constexpr std::uint32_t word_bits = sizeof(ElfW(Addr)) * 8;
  const ElfW(Addr) mask = ElfW(Addr){1} << (hash % word_bits) | ElfW(Addr){1} << ((hash >> bloom_shift) % word_bits);
  if ((bloom[hash / word_bits % bloom_words] & mask) != mask) return nullptr;
  std::uint32_t index = buckets[hash % bucket_count];
  if (index < first_symbol) return nullptr;
  for (;; ++index) {
    const std::uint32_t entry = chains[index - first_symbol];
    if ((entry | 1) == (hash | 1) && is_match(tables, index, name)) return &tables.symbols[index];
    if ((entry & 1) != 0) return nullptr;
  }
}

const ElfW(Sym) * find_by_sysv_hash(const Tables& tables, const char* name) {
  const std::uint32_t bucket_count = tables.hash[0];
  const std::uint32_t* buckets = tables.hash + 2;
  const std::uint32_t* chains = buckets + bucket_count;
  if (bucket_count == 0) return nullptr;
  for (std::uint32_t index = buckets[sysv_hash_of(name) % bucket_count]; index != STN_UNDEF; index = chains[index]) {
    if (is_match(tables, index, name)) return &tables.symbols[index];
  }
  return nullptr;
}

Tables tables_of(ElfW(Addr) bias, const ElfW(Dyn) * entry) {
  Tables tables;
  if (entry == nullptr) return tables;
  // The loader relocates these pointers in place, except in the kernel's own object, whose memory it can't write.
  const auto at = [&](ElfW(Addr) value) { return value < bias ? value + bias : value; };
  for (; entry->d_tag != DT_NULL; ++entry) {
    const ElfW(Addr) value = at(entry->d_un.d_ptr);
    switch (entry->d_tag) {
      case DT_SYMTAB:
        tables.symbols = reinterpret_cast<const ElfW(Sym)*>(value);
        break;
      case DT_STRTAB:
        tables.strings = reinterpret_cast<const char*>(value);
        break;
      case DT_STRSZ:
        tables.strings_bytes = entry->d_un.d_val;
        break;
      case DT_GNU_HASH:
        tables.gnu_hash = reinterpret_cast<const std::uint32_t*>(value);
        break;
      case DT_HASH:
        tables.hash = reinterpret_cast<const std::uint32_t*>(value);
        break;
      case DT_VERSYM:
        tables.versions = reinterpret_cast<const std::uint16_t*>(value);
        break;
      default:
        break;
    }
  }
  return tables;
}

const ElfW(Dyn) * dynamic_of(const dl_phdr_info& object) {
  for (int i = 0; i < object.dlpi_phnum; ++i) {
    if (object.dlpi_phdr[i].p_type == PT_DYNAMIC)
      return reinterpret_cast<const ElfW(Dyn)*>(object.dlpi_addr + object.dlpi_phdr[i].p_vaddr);
  }
  return nullptr;
}

void* find_in(ElfW(Addr) bias, const ElfW(Dyn) * dynamic, const char* name) {
  const Tables tables = tables_of(bias, dynamic);
  if (tables.symbols == nullptr || tables.strings == nullptr) return nullptr;
  const ElfW(Sym)* symbol = nullptr;
  if (tables.gnu_hash != nullptr) {
    symbol = find_by_gnu_hash(tables, name);
  } else if (tables.hash != nullptr) {
    symbol = find_by_sysv_hash(tables, name);
  }
  if (symbol == nullptr) return nullptr;
  void* address = reinterpret_cast<void*>(bias + symbol->st_value);
  if ((symbol->st_info & 0xf) == STT_GNU_IFUNC) address = reinterpret_cast<void* (*)()>(address)();
  return address;
}

void* find_in(const dl_phdr_info& object, const char* name) {
  return find_in(object.dlpi_addr, dynamic_of(object), name);
}

struct Search {
  const char* name;
  const char* except;
  bool only_after_us;
  bool only_us;
  bool seen_us;
  FoundSymbol found;
};

int visit(dl_phdr_info* object, std::size_t, void* data) {
  Search& search = *static_cast<Search*>(data);
  const bool is_us = !search.seen_us && contains(*object, reinterpret_cast<const void*>(&visit));
  search.seen_us |= is_us;
  if (is_us != search.only_us) return 0;
  if (search.only_after_us && !search.seen_us) return 0;
  if (search.except != nullptr && find_in(*object, search.except) != nullptr) return 0;
  search.found.address = find_in(*object, search.name);
  search.found.object = object->dlpi_name;
  return search.found.address != nullptr ? 1 : 0;
}

FoundSymbol search_objects(const char* name, const char* except, bool only_after_us, bool only_us = false) {
  Search search{name, except, only_after_us, only_us, false, {}};
  dl_iterate_phdr(visit, &search);
  return search.found.address != nullptr ? search.found : FoundSymbol{};
}

}  // namespace

bool contains(const dl_phdr_info& object, const void* address) {
  const auto wanted = reinterpret_cast<ElfW(Addr)>(address);
  for (int i = 0; i < object.dlpi_phnum; ++i) {
    const ElfW(Phdr)& segment = object.dlpi_phdr[i];
    const ElfW(Addr) begin = object.dlpi_addr + segment.p_vaddr;
    if (segment.p_type == PT_LOAD && wanted >= begin && wanted < begin + segment.p_memsz) return true;
  }
  return false;
}

void* find_next_early(const char* name) {
  bool seen_us = false;
  for (int round = 0; round < 2; ++round, seen_us = true) {
    for (const link_map* object = _r_debug.r_map; object != nullptr; object = object->l_next) {
      if (object->l_ld == _DYNAMIC) {
        seen_us = true;
      } else if (seen_us) {
        void* const found = find_in(object->l_addr, object->l_ld, name);
        if (found != nullptr) return found;
      }
    }
  }
  return nullptr;
}

bool program_is_sanitized() {
  // Its run-time part asks for this function of the program's, which hardly any has.
  constexpr char mark[] = "__sanitizer_symbolize_code";
  const link_map* const program = _r_debug.r_map;
  if (program == nullptr) return false;
  const Tables tables = tables_of(program->l_addr, program->l_ld);
  for (std::size_t at = 0; tables.strings != nullptr && at + sizeof mark <= tables.strings_bytes; ++at) {
    if (tables.strings[at] == '_' && same_text(tables.strings + at, mark)) return true;
  }
  return false;
}

void file_name_of(const char* object, char* name, std::size_t room) {
  name[0] = '\0';
  const int file = open(object, O_PATH | O_CLOEXEC);
  if (file < 0) return;
  char link[32];
  std::snprintf(link, sizeof link, "/proc/self/fd/%d", file);
  char path[4096];
  const ssize_t bytes = readlink(link, path, sizeof path - 1);
  close(file);
  path[bytes < 0 ? 0 : bytes] = '\0';
  // Where /proc is missing, the loader's name has to do.
  const char* const shown = bytes > 0 ? path : object;
  const char* const slash = std::strrchr(shown, '/');
  std::strncpy(name, slash == nullptr ? shown : slash + 1, room - 1);
  name[room - 1] = '\0';
}

FoundSymbol find_next(const char* name) {
  const FoundSymbol found = search_objects(name, nullptr, true);
  return found.address != nullptr ? found : find_anywhere(name);
}

void* find_here(const char* name) { return search_objects(name, nullptr, false, true).address; }

FoundSymbol find_anywhere(const char* name, const char* except) { return search_objects(name, except, false); }

}  // namespace blockyard::record
