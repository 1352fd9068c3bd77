#include "unwind/objects.hpp"

#include <cstring>

#include <elf.h>
#include <link.h>

namespace blockyard::unwind {
namespace {

/// What glibc's _dl_find_object fills, as <dlfcn.h> has it from 2.35 on; declared here so that older headers do.
struct FoundByLoader {
  unsigned long long flags;
  void* map_begin;
  void* map_end;
  link_map* object;
  void* eh_frame_header;
  unsigned long long reserved[8];
};
using FindObject = int (*)(void*, FoundByLoader*);

FindObject loaders_function = nullptr;

struct Segments {
  const ElfW(Phdr) * first = nullptr;
  std::size_t count = 0;
};

std::uint64_t address_of(const Object& object, const ElfW(Phdr) & segment) { return object.bias + segment.p_vaddr; }

// The readable segment that holds the header also holds .eh_frame: linkers put both beside the other constants.
void find_tables(Object& object, const Segments& segments) {
  object.header = nullptr;
  for (std::size_t i = 0; i < segments.count; ++i) {
    if (segments.first[i].p_type == PT_GNU_EH_FRAME) {
      object.header = reinterpret_cast<const std::uint8_t*>(address_of(object, segments.first[i]));
    }
  }
  if (object.header == nullptr) return;
  const auto wanted = reinterpret_cast<std::uint64_t>(object.header);
  for (std::size_t i = 0; i < segments.count; ++i) {
    const ElfW(Phdr)& segment = segments.first[i];
    const std::uint64_t begin = address_of(object, segment);
    if (segment.p_type != PT_LOAD || (segment.p_flags & PF_R) == 0) continue;
    if (wanted < begin || wanted >= begin + segment.p_filesz) continue;
    object.tables_begin = reinterpret_cast<const std::uint8_t*>(begin);
    object.tables_end = object.tables_begin + segment.p_filesz;
    return;
  }
  object.header = nullptr;
}

// The first page of every object that a linker makes holds its ELF header, and the program headers behind it.
Segments segments_in_memory(std::uint64_t begin, std::uint64_t end) {
  const auto* header = reinterpret_cast<const ElfW(Ehdr)*>(begin);
  if (end - begin < sizeof *header || std::memcmp(header->e_ident, ELFMAG, SELFMAG) != 0) return {};
  constexpr std::uint64_t first_page = 4096;
  const std::uint64_t bytes = std::uint64_t{header->e_phnum} * sizeof(ElfW(Phdr));
  if (header->e_phentsize != sizeof(ElfW(Phdr)) || header->e_phoff + bytes > first_page) return {};
  return {reinterpret_cast<const ElfW(Phdr)*>(begin + header->e_phoff), header->e_phnum};
}

// Where the object's segments begin and end. Between them may be holes.
void find_extent(Object& object, const Segments& segments) {
  object.begin = ~std::uint64_t{0};
  object.end = 0;
  for (std::size_t i = 0; i < segments.count; ++i) {
    if (segments.first[i].p_type != PT_LOAD) continue;
    const std::uint64_t begin = address_of(object, segments.first[i]);
    const std::uint64_t end = begin + segments.first[i].p_memsz;
    if (begin < object.begin) object.begin = begin & ~std::uint64_t{4095};
    if (end > object.end) object.end = end;
  }
}

bool contains(const Object& object, const Segments& segments, std::uint64_t address) {
  for (std::size_t i = 0; i < segments.count; ++i) {
    const std::uint64_t begin = address_of(object, segments.first[i]);
    if (segments.first[i].p_type == PT_LOAD && address >= begin && address < begin + segments.first[i].p_memsz)
      return true;
  }
  return false;
}

struct Search {
  std::uint64_t address;
  Object* found;
};

int visit(dl_phdr_info* info, std::size_t, void* data) {
  const Search& search = *static_cast<Search*>(data);
  Object object;
  object.bias = info->dlpi_addr;
  object.path = info->dlpi_name;
  const Segments segments{info->dlpi_phdr, info->dlpi_phnum};
  if (!contains(object, segments, search.address)) return 0;
  find_extent(object, segments);
  object.identity = info->dlpi_phdr;
  find_tables(object, segments);
  *search.found = object;
  return 1;
}

}  // namespace

void use_find_object(void* function) { loaders_function = reinterpret_cast<FindObject>(function); }

bool find_object(std::uint64_t address, Object& found) {
  Search search{address, &found};
  if (loaders_function == nullptr) return dl_iterate_phdr(visit, &search) != 0;
  FoundByLoader result{};
  if (loaders_function(reinterpret_cast<void*>(address), &result) != 0) return false;
  // Of an object with holes, the loader names one segment alone: then its list says more.
  const Segments segments = segments_in_memory(reinterpret_cast<std::uint64_t>(result.map_begin),
                                               reinterpret_cast<std::uint64_t>(result.map_end));
  if (segments.count == 0) return dl_iterate_phdr(visit, &search) != 0;
  found = Object{};
  found.bias = result.object->l_addr;
  found.path = result.object->l_name;
  found.identity = segments.first;
  find_extent(found, segments);
  find_tables(found, segments);
  return true;
}

bool is_loaded(const char* file_name) {
  const auto compare = [](dl_phdr_info* info, std::size_t, void* data) {
    const char* const slash = std::strrchr(info->dlpi_name, '/');
    const char* const name = slash == nullptr ? info->dlpi_name : slash + 1;
    return std::strcmp(name, static_cast<const char*>(data)) == 0 ? 1 : 0;
  };
  return dl_iterate_phdr(compare, const_cast<char*>(file_name)) != 0;
}

std::size_t build_id_of(const Object& object, std::uint8_t* into, std::size_t capacity) {
  const Segments segments = segments_in_memory(object.begin, object.end);
  for (std::size_t i = 0; i < segments.count; ++i) {
    const ElfW(Phdr)& segment = segments.first[i];
    if (segment.p_type != PT_NOTE) continue;
    const auto* at = reinterpret_cast<const std::uint8_t*>(address_of(object, segment));
    const std::uint8_t* const end = at + segment.p_memsz;
    if (reinterpret_cast<std::uint64_t>(at) < object.begin || reinterpret_cast<std::uint64_t>(end) > object.end)
      continue;
    const std::uint64_t unit = segment.p_align == 8 ? 8 : 4;
    const auto rounded = [unit](std::uint64_t bytes) { return (bytes + unit - 1) / unit * unit; };
    while (static_cast<std::uint64_t>(end - at) >= sizeof(ElfW(Nhdr))) {
      ElfW(Nhdr) note;
      std::memcpy(&note, at, sizeof note);
      const std::uint64_t body = rounded(sizeof note + note.n_namesz);
      const std::uint64_t bytes = body + rounded(note.n_descsz);
      if (bytes > static_cast<std::uint64_t>(end - at)) break;
      if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 && std::memcmp(at + sizeof note, "GNU", 4) == 0) {
        const std::size_t held = note.n_descsz < capacity ? note.n_descsz : capacity;
        std::memcpy(into, at + body, held);
        return held;
      }
      at += bytes;
    }
  }
  return 0;
}

}  // namespace blockyard::unwind
