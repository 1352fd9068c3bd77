/// foreign: any shared object that exports malloc and free, named by $BLOCKYARD_ALLOCATOR_LIBRARY. Other functions of
/// the family are used if it exports them; if not, the adapter emulates them with malloc and free.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>

#include "support/library.hpp"
#include "support/setup.hpp"

namespace {

using blockyard::adapters::fail;
using blockyard::adapters::Library;

constexpr size_t plain_alignment = alignof(std::max_align_t);

struct Entry {
  void* (*malloc)(size_t);
  void (*free)(void*);
  void* (*calloc)(size_t, size_t);
  void* (*realloc)(void*, size_t);
  int (*posix_memalign)(void**, size_t alignment, size_t size);
  size_t (*usable_size)(void*);
};
Entry entry;

void* zeroed_by_calloc(size_t size) { return entry.calloc(1, size); }
void* zeroed_by_malloc(size_t size) {
  void* block = entry.malloc(size);
  if (block != nullptr) std::memset(block, 0, size);
  return block;
}

void* aligned_by_posix_memalign(size_t alignment, size_t size) {
  void* block = nullptr;
  return entry.posix_memalign(&block, std::max(alignment, sizeof(void*)), size) == 0 ? block : nullptr;
}

// The word before an aligned block holds the address that malloc returned. free_sized knows the alignment, so only such
// blocks are looked up.
void* aligned_by_malloc(size_t alignment, size_t size) {
  if (alignment <= plain_alignment) return entry.malloc(size);
  void* whole = entry.malloc(size + alignment + sizeof(void*));
  if (whole == nullptr) return nullptr;
  const auto first = reinterpret_cast<uintptr_t>(whole) + sizeof(void*);
  auto* block = reinterpret_cast<void*>((first + alignment - 1) & ~(uintptr_t{alignment} - 1));
  std::memcpy(static_cast<char*>(block) - sizeof(void*), &whole, sizeof(void*));
  return block;
}
void free_sized(void* block, size_t, size_t alignment) {
  if (block != nullptr && alignment > plain_alignment) {
    std::memcpy(&block, static_cast<char*>(block) - sizeof(void*), sizeof(void*));
  }
  entry.free(block);
}

void* reallocate_by_realloc(void* block, size_t, size_t, size_t size) { return entry.realloc(block, size); }
void* reallocate_by_copy(void* block, size_t old_size, size_t old_alignment, size_t size);

int init(const by_adapter_setup* setup);

by_adapter adapter = blockyard::adapters::described({
    .name = "foreign",
    .flags = BY_ADAPTER_EMULATES_ZEROED | BY_ADAPTER_EMULATES_REALLOCATE,
    .init = init,
    .allocate_zeroed = zeroed_by_malloc,
    .allocate_aligned = aligned_by_malloc,
    .reallocate = reallocate_by_copy,
});

// realloc's result is aligned as malloc's: a larger alignment of the old block is not kept.
void* reallocate_by_copy(void* block, size_t old_size, size_t old_alignment, size_t size) {
  void* moved = entry.malloc(size);
  if (moved == nullptr || block == nullptr) return moved;
  std::memcpy(moved, block, std::min(old_size, size));
  if ((adapter.flags & BY_ADAPTER_SIZED_FREE) != 0) {
    free_sized(block, old_size, old_alignment);
  } else {
    entry.free(block);
  }
  return moved;
}

Library& library() {
  static Library loaded(nullptr, Library::Binding::deepest);
  return loaded;
}

int init(const by_adapter_setup* setup) {
  if (blockyard::adapters::check_abi(*setup) != 0) return 1;
  return library().ok() ? 0 : fail(*setup, library().error());
}

}  // namespace

extern "C" BY_API const by_adapter* by_adapter_get() {
  static const bool bound = [] {
    Library& foreign = library();
    foreign.bind("malloc", entry.malloc);
    foreign.bind("free", entry.free);
    if (!foreign.ok()) return false;
    entry.calloc = foreign.find<void*(size_t, size_t)>("calloc");
    entry.realloc = foreign.find<void*(void*, size_t)>("realloc");
    entry.posix_memalign = foreign.find<int(void**, size_t, size_t)>("posix_memalign");
    auto* memalign = foreign.find<void*(size_t, size_t)>("memalign");
    if (memalign == nullptr) memalign = foreign.find<void*(size_t, size_t)>("aligned_alloc");
    entry.usable_size = foreign.find<size_t(void*)>("malloc_usable_size");
    adapter.allocate = entry.malloc;
    adapter.free = entry.free;
    if (entry.calloc != nullptr) {
      adapter.allocate_zeroed = zeroed_by_calloc;
      adapter.flags &= ~uint32_t{BY_ADAPTER_EMULATES_ZEROED};
    }
    if (memalign != nullptr) {
      adapter.allocate_aligned = memalign;
    } else if (entry.posix_memalign != nullptr) {
      adapter.allocate_aligned = aligned_by_posix_memalign;
    } else {
      adapter.flags |= BY_ADAPTER_SIZED_FREE | BY_ADAPTER_EMULATES_ALIGNED;
      adapter.free_sized = free_sized;
    }
    // Without its own aligned blocks, the library's realloc would get addresses that do not come from its malloc.
    if (entry.realloc != nullptr && adapter.free_sized == nullptr) {
      adapter.reallocate = reallocate_by_realloc;
      adapter.flags &= ~uint32_t{BY_ADAPTER_EMULATES_REALLOCATE};
    }
    return true;
  }();
  static_cast<void>(bound);
  return &adapter;
}

// An emulated aligned block is not the library's own.
extern "C" BY_API size_t by_adapter_usable_size(void* block) {
  return entry.usable_size != nullptr && adapter.free_sized == nullptr ? entry.usable_size(block) : 0;
}
