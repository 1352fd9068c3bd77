#include "support/library_adapter.hpp"

namespace blockyard::adapters {
namespace {

// Constant-initialised: each call goes through one of these pointers, without a guard.
void* (*library_calloc)(size_t, size_t) = nullptr;
void* (*library_realloc)(void*, size_t) = nullptr;
size_t (*library_usable_size_function)(void*) = nullptr;

const Library* loaded = nullptr;
int (*populate)(const by_adapter_setup&, by_adapter&) = nullptr;
int (*set_options)(const by_adapter_setup&) = nullptr;

void* allocate_zeroed(size_t size) { return library_calloc(1, size); }
void* reallocate(void* block, size_t, size_t, size_t size) { return library_realloc(block, size); }

int init(const by_adapter_setup* setup);

by_adapter adapter = described({
    .name = "",
    .init = init,
    .allocate_zeroed = allocate_zeroed,
    .reallocate = reallocate,
});

int init(const by_adapter_setup* setup) {
  if (check_abi(*setup) != 0) return 1;
  if (!loaded->ok()) return fail(*setup, loaded->error());
  if (set_options != nullptr && set_options(*setup) != 0) return 1;
  return setup->populate != 0 ? populate(*setup, adapter) : 0;
}

template <typename Function>
void bind_if_named(Library& library, const char* name, Function*& function) {
  if (name != nullptr) library.bind(name, function);
}

}  // namespace

const by_adapter* library_adapter(const LibraryDescription& description) {
  static Library library(description.library);
  static std::string version;
  if (loaded != nullptr) return &adapter;
  loaded = &library;
  populate = description.populate;
  set_options = description.set_options;
  adapter.name = description.name;
  const FamilyNames& names = description.names;
  bind_if_named(library, names.malloc, adapter.allocate);
  bind_if_named(library, names.calloc, library_calloc);
  bind_if_named(library, names.realloc, library_realloc);
  bind_if_named(library, names.memalign, adapter.allocate_aligned);
  bind_if_named(library, names.free, adapter.free);
  if (names.usable_size != nullptr) library_usable_size_function = library.find<size_t(void*)>(names.usable_size);
  if (!library.ok()) return &adapter;
  version = description.bind(library, adapter);
  adapter.version = version.c_str();
  return &adapter;
}

size_t library_usable_size(void* block) {
  return library_usable_size_function != nullptr ? library_usable_size_function(block) : 0;
}

}  // namespace blockyard::adapters
