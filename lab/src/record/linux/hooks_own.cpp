#include "record/linux/hooks_own.hpp"

#include <cstddef>

#include "record/linux/hooks.hpp"

namespace blockyard::record {
namespace {

template <typename Pointer>
Pointer real_of(unsigned index) {
  return reinterpret_cast<Pointer>(functions[index].real);
}

using Allocate = void* (*)(std::size_t);
using AllocateTwo = void* (*)(std::size_t, std::size_t);
using Free = void (*)(void*);

void* own_malloc(std::size_t size) {
  return allocate(RecordKind::allocate, size, 0, BLOCKYARD_FRAME, [=] { return real_of<Allocate>(malloc_)(size); });
}
void own_free(void* block) {
  release<Owner::other>(block, BLOCKYARD_FRAME, [=] { real_of<Free>(free_)(block); });
}
void* own_calloc(std::size_t count, std::size_t size) {
  return allocate(RecordKind::allocate_zeroed, count * size, 0, BLOCKYARD_FRAME,
                  [=] { return real_of<AllocateTwo>(calloc_)(count, size); });
}
void* own_realloc(void* block, std::size_t size) {
  return reallocate<Owner::other>(block, size, BLOCKYARD_FRAME,
                                  [=] { return real_of<void* (*)(void*, std::size_t)>(realloc_)(block, size); });
}
int own_posix_memalign(void** result, std::size_t alignment, std::size_t size) {
  int error = 0;
  allocate(RecordKind::allocate_aligned, size, alignment, BLOCKYARD_FRAME, [&]() -> void* {
    error = real_of<int (*)(void**, std::size_t, std::size_t)>(posix_memalign_)(result, alignment, size);
    return error == 0 ? *result : nullptr;
  });
  return error;
}
template <Index index>
void* own_aligned(std::size_t alignment, std::size_t size) {
  return allocate(RecordKind::allocate_aligned, size, alignment, BLOCKYARD_FRAME,
                  [=] { return real_of<AllocateTwo>(index)(alignment, size); });
}
template <Index index>
void* own_page_aligned(std::size_t size) {
  return allocate(RecordKind::allocate_aligned, size, page_bytes, BLOCKYARD_FRAME,
                  [=] { return real_of<Allocate>(index)(size); });
}

// jemalloc's, whose flags have the alignment's logarithm in six bits, and zeroing in the next.
std::size_t alignment_of(int flags) { return (flags & 63) == 0 ? 0 : std::size_t{1} << (flags & 63); }
void* own_mallocx(std::size_t size, int flags) {
  const std::size_t alignment = alignment_of(flags);
  const RecordKind kind = alignment != 0        ? RecordKind::allocate_aligned
                          : (flags & 0x40) != 0 ? RecordKind::allocate_zeroed
                                                : RecordKind::allocate;
  return allocate(kind, size, alignment, BLOCKYARD_FRAME,
                  [=] { return real_of<void* (*)(std::size_t, int)>(mallocx_)(size, flags); });
}
void* own_rallocx(void* block, std::size_t size, int flags) {
  return reallocate<Owner::other>(block, size, BLOCKYARD_FRAME, [=] {
    return real_of<void* (*)(void*, std::size_t, int)>(rallocx_)(block, size, flags);
  });
}
void own_dallocx(void* block, int flags) {
  release<Owner::other>(block, BLOCKYARD_FRAME, [=] { real_of<void (*)(void*, int)>(dallocx_)(block, flags); });
}
void own_sdallocx(void* block, std::size_t size, int flags) {
  release<Owner::other>(block, BLOCKYARD_FRAME,
                        [=] { real_of<void (*)(void*, std::size_t, int)>(sdallocx_)(block, size, flags); });
}

// mimalloc's.
void* own_zalloc(std::size_t size) {
  return allocate(RecordKind::allocate_zeroed, size, 0, BLOCKYARD_FRAME,
                  [=] { return real_of<Allocate>(zalloc_)(size); });
}
template <Index index>
void* own_size_aligned(std::size_t size, std::size_t alignment) {
  return allocate(RecordKind::allocate_aligned, size, alignment, BLOCKYARD_FRAME,
                  [=] { return real_of<AllocateTwo>(index)(size, alignment); });
}
void* own_realloc_aligned(void* block, std::size_t size, std::size_t alignment) {
  return reallocate<Owner::other>(block, size, BLOCKYARD_FRAME, [=] {
    return real_of<void* (*)(void*, std::size_t, std::size_t)>(realloc_aligned_)(block, size, alignment);
  });
}
template <Index index>
void own_free_with(void* block, std::size_t fact) {
  release<Owner::other>(block, BLOCKYARD_FRAME, [=] { real_of<void (*)(void*, std::size_t)>(index)(block, fact); });
}
void own_free_size_aligned(void* block, std::size_t size, std::size_t alignment) {
  release<Owner::other>(block, BLOCKYARD_FRAME, [=] {
    real_of<void (*)(void*, std::size_t, std::size_t)>(free_size_aligned_)(block, size, alignment);
  });
}

// C++'s. They need not be the allocator's malloc: a program's own may count, or put something in front of each block.
// The hook calls the real one, and what that asks the allocator for is not recorded. An exception must not pass through
// a frame of ours, so it is the form that throws none; only where that fails, the one that throws is called.
using Nothrow = const void*;
template <Index index>
void* try_new(std::size_t size, Nothrow nothrow, const void* frame) {
  return allocate(RecordKind::allocate, size, 0, frame,
                  [=] { return real_of<void* (*)(std::size_t, Nothrow)>(index)(size, nothrow); });
}
template <Index index>
void* try_new_aligned(std::size_t size, std::size_t alignment, Nothrow nothrow, const void* frame) {
  using Real = void* (*)(std::size_t, std::size_t, Nothrow);
  return allocate(RecordKind::allocate_aligned, size, alignment, frame,
                  [=] { return real_of<Real>(index)(size, alignment, nothrow); });
}
template <Index index>
void* own_new_nothrow(std::size_t size, Nothrow nothrow) {
  return try_new<index>(size, nothrow, BLOCKYARD_FRAME);
}
template <Index index>
void* own_new_aligned_nothrow(std::size_t size, std::size_t alignment, Nothrow nothrow) {
  return try_new_aligned<index>(size, alignment, nothrow, BLOCKYARD_FRAME);
}
// std::nothrow of a library that need not be there.
constexpr char no_throw = 0;
template <Index index, Index nothrow>
void* own_new(std::size_t size) {
  void* const block = self.busy != 0 ? nullptr : try_new<nothrow>(size, &no_throw, BLOCKYARD_FRAME);
  return block != nullptr ? block : real_of<Allocate>(index)(size);
}
template <Index index, Index nothrow>
void* own_new_aligned(std::size_t size, std::size_t alignment) {
  void* const block = self.busy != 0 ? nullptr : try_new_aligned<nothrow>(size, alignment, &no_throw, BLOCKYARD_FRAME);
  return block != nullptr ? block : real_of<AllocateTwo>(index)(size, alignment);
}
template <Index index, typename... More>
void own_delete(void* block, More... more) {
  release<Owner::other>(block, BLOCKYARD_FRAME, [=] { real_of<void (*)(void*, More...)>(index)(block, more...); });
}

}  // namespace

// Compilers fill the table before anything runs, since it may be needed before our constructors do; no function call in
// it, which GCC leaves to them.
#define BLOCKYARD_HOOK(...) reinterpret_cast<void*>(&__VA_ARGS__)

Function functions[] = {
    {"malloc", nullptr, BLOCKYARD_HOOK(own_malloc)},
    {"free", nullptr, BLOCKYARD_HOOK(own_free)},
    {"calloc", nullptr, BLOCKYARD_HOOK(own_calloc)},
    {"realloc", nullptr, BLOCKYARD_HOOK(own_realloc)},
    {"posix_memalign", nullptr, BLOCKYARD_HOOK(own_posix_memalign)},
    {"aligned_alloc", nullptr, BLOCKYARD_HOOK(own_aligned<aligned_alloc_>)},
    {"memalign", nullptr, BLOCKYARD_HOOK(own_aligned<memalign_>)},
    {"valloc", nullptr, BLOCKYARD_HOOK(own_page_aligned<valloc_>)},
    {"pvalloc", nullptr, BLOCKYARD_HOOK(own_page_aligned<pvalloc_>)},
    {"mallocx", nullptr, BLOCKYARD_HOOK(own_mallocx)},
    {"rallocx", nullptr, BLOCKYARD_HOOK(own_rallocx)},
    {"dallocx", nullptr, BLOCKYARD_HOOK(own_dallocx)},
    {"sdallocx", nullptr, BLOCKYARD_HOOK(own_sdallocx)},
    {"zalloc", nullptr, BLOCKYARD_HOOK(own_zalloc)},
    {"malloc_aligned", nullptr, BLOCKYARD_HOOK(own_size_aligned<malloc_aligned_>)},
    {"zalloc_aligned", nullptr, BLOCKYARD_HOOK(own_size_aligned<zalloc_aligned_>)},
    {"realloc_aligned", nullptr, BLOCKYARD_HOOK(own_realloc_aligned)},
    {"free_size", nullptr, BLOCKYARD_HOOK(own_free_with<free_size_>)},
    {"free_aligned", nullptr, BLOCKYARD_HOOK(own_free_with<free_aligned_>)},
    {"free_size_aligned", nullptr, BLOCKYARD_HOOK(own_free_size_aligned)},
    {"free_sized", nullptr, BLOCKYARD_HOOK(own_free_with<free_sized_>)},
    {"_Znwm", nullptr, BLOCKYARD_HOOK(own_new<new_, new_nothrow_>)},
    {"_ZnwmRKSt9nothrow_t", nullptr, BLOCKYARD_HOOK(own_new_nothrow<new_nothrow_>)},
    {"_ZnwmSt11align_val_t", nullptr, BLOCKYARD_HOOK(own_new_aligned<new_aligned_, new_aligned_nothrow_>)},
    {"_ZnwmSt11align_val_tRKSt9nothrow_t", nullptr, BLOCKYARD_HOOK(own_new_aligned_nothrow<new_aligned_nothrow_>)},
    {"_Znam", nullptr, BLOCKYARD_HOOK(own_new<new_array_, new_array_nothrow_>)},
    {"_ZnamRKSt9nothrow_t", nullptr, BLOCKYARD_HOOK(own_new_nothrow<new_array_nothrow_>)},
    {"_ZnamSt11align_val_t", nullptr, BLOCKYARD_HOOK(own_new_aligned<new_array_aligned_, new_array_aligned_nothrow_>)},
    {"_ZnamSt11align_val_tRKSt9nothrow_t", nullptr,
     BLOCKYARD_HOOK(own_new_aligned_nothrow<new_array_aligned_nothrow_>)},
    {"_ZdlPv", nullptr, BLOCKYARD_HOOK(own_delete<delete_>)},
    {"_ZdaPv", nullptr, BLOCKYARD_HOOK(own_delete<delete_array_>)},
    {"_ZdlPvm", nullptr, BLOCKYARD_HOOK(own_delete<delete_size_, std::size_t>)},
    {"_ZdaPvm", nullptr, BLOCKYARD_HOOK(own_delete<delete_array_size_, std::size_t>)},
    {"_ZdlPvRKSt9nothrow_t", nullptr, BLOCKYARD_HOOK(own_delete<delete_nothrow_, Nothrow>)},
    {"_ZdaPvRKSt9nothrow_t", nullptr, BLOCKYARD_HOOK(own_delete<delete_array_nothrow_, Nothrow>)},
    {"_ZdlPvSt11align_val_t", nullptr, BLOCKYARD_HOOK(own_delete<delete_aligned_, std::size_t>)},
    {"_ZdaPvSt11align_val_t", nullptr, BLOCKYARD_HOOK(own_delete<delete_array_aligned_, std::size_t>)},
    {"_ZdlPvmSt11align_val_t", nullptr, BLOCKYARD_HOOK(own_delete<delete_size_aligned_, std::size_t, std::size_t>)},
    {"_ZdaPvmSt11align_val_t", nullptr,
     BLOCKYARD_HOOK(own_delete<delete_array_size_aligned_, std::size_t, std::size_t>)},
    {"_ZdlPvSt11align_val_tRKSt9nothrow_t", nullptr,
     BLOCKYARD_HOOK(own_delete<delete_aligned_nothrow_, std::size_t, Nothrow>)},
    {"_ZdaPvSt11align_val_tRKSt9nothrow_t", nullptr,
     BLOCKYARD_HOOK(own_delete<delete_array_aligned_nothrow_, std::size_t, Nothrow>)},
};
#undef BLOCKYARD_HOOK

}  // namespace blockyard::record
