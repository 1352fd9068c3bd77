#include "support/library.hpp"

#include <dlfcn.h>
#include <link.h>
#include <stdlib.h>

#include <cctype>
#include <string_view>

namespace blockyard::adapters {
namespace {

struct TextSearch {
  const link_map* library;
  std::string_view marker;
  std::string found;
};

int search_segments(dl_phdr_info* info, size_t, void* data) {
  auto& search = *static_cast<TextSearch*>(data);
  if (info->dlpi_addr != search.library->l_addr) return 0;
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const ElfW(Phdr)& segment = info->dlpi_phdr[i];
    if (segment.p_type != PT_LOAD || (segment.p_flags & PF_R) == 0) continue;
    const std::string_view bytes(reinterpret_cast<const char*>(info->dlpi_addr + segment.p_vaddr), segment.p_memsz);
    const size_t at = bytes.find(search.marker);
    if (at == std::string_view::npos) continue;
    size_t begin = at + search.marker.size();
    while (begin < bytes.size() && (bytes[begin] == ' ' || bytes[begin] == '\t')) ++begin;
    size_t end = begin;
    while (end < bytes.size() && (std::isalnum(static_cast<unsigned char>(bytes[end])) != 0 || bytes[end] == '.'))
      ++end;
    search.found = bytes.substr(begin, end - begin);
    return 1;
  }
  return 1;
}

}  // namespace

Library::Library(const char* fallback, Binding binding) {
  const char* chosen = getenv("BLOCKYARD_ALLOCATOR_LIBRARY");
  if (chosen == nullptr || *chosen == '\0') chosen = fallback;
  if (chosen == nullptr) {
    error_ = "BLOCKYARD_ALLOCATOR_LIBRARY does not name the shared object to drive";
    return;
  }
  handle_ = dlopen(chosen, RTLD_NOW | RTLD_LOCAL | (binding == Binding::deepest ? RTLD_DEEPBIND : 0));
  if (handle_ == nullptr) error_ = dlerror();
}

std::string Library::path() const {
  link_map* map = nullptr;
  if (handle_ == nullptr || dlinfo(handle_, RTLD_DI_LINKMAP, &map) != 0) return {};
  char* resolved = realpath(map->l_name, nullptr);
  std::string result = resolved != nullptr ? resolved : map->l_name;
  free(resolved);
  return result;
}

std::string Library::text_after(const char* marker) const {
  TextSearch search{nullptr, marker, {}};
  link_map* map = nullptr;
  if (handle_ == nullptr || dlinfo(handle_, RTLD_DI_LINKMAP, &map) != 0) return {};
  search.library = map;
  dl_iterate_phdr(search_segments, &search);
  return search.found;
}

void* Library::optional(const char* name) const {
  if (handle_ == nullptr) return nullptr;
  void* symbol = dlsym(handle_, name);
  link_map* own = nullptr;
  link_map* owner = nullptr;
  Dl_info info;
  // dlsym also searches the library's dependencies: libc's calloc must not stand in for one that the library lacks.
  if (symbol == nullptr || dlinfo(handle_, RTLD_DI_LINKMAP, &own) != 0 ||
      dladdr1(symbol, &info, reinterpret_cast<void**>(&owner), RTLD_DL_LINKMAP) == 0 || owner != own) {
    return nullptr;
  }
  return symbol;
}

void* Library::required(const char* name) {
  void* symbol = optional(name);
  if (symbol == nullptr && handle_ != nullptr && error_.empty()) error_ = path() + " does not export " + name;
  return symbol;
}

std::string version_of_package(const char* fallback) {
  const char* version = getenv("BLOCKYARD_ALLOCATOR_VERSION");
  return version != nullptr && *version != '\0' ? version : fallback;
}

}  // namespace blockyard::adapters
