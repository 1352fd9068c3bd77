// The hooks of an allocator that stands in front of malloc's: it has more functions, and names of its own.
#pragma once

namespace blockyard::record {

/// A function of an allocator: what it is called behind the allocator's prefix, the real one, and the hook.
struct Function {
  const char* name;
  void* real;
  void* hook;
  bool is_exported = false;  ///< others ask for it by its name
};

/// The order of `functions`.
enum Index : unsigned {
  malloc_,
  free_,
  calloc_,
  realloc_,
  posix_memalign_,
  aligned_alloc_,
  memalign_,
  valloc_,
  pvalloc_,
  mallocx_,
  rallocx_,
  dallocx_,
  sdallocx_,
  zalloc_,
  malloc_aligned_,
  zalloc_aligned_,
  realloc_aligned_,
  free_size_,
  free_aligned_,
  free_size_aligned_,
  free_sized_,
  new_,
  new_nothrow_,
  new_aligned_,
  new_aligned_nothrow_,
  new_array_,
  new_array_nothrow_,
  new_array_aligned_,
  new_array_aligned_nothrow_,
  delete_,
  delete_array_,
  delete_size_,
  delete_array_size_,
  delete_nothrow_,
  delete_array_nothrow_,
  delete_aligned_,
  delete_array_aligned_,
  delete_size_aligned_,
  delete_array_size_aligned_,
  delete_aligned_nothrow_,
  delete_array_aligned_nothrow_,
  function_count,
};

extern Function functions[function_count];

}  // namespace blockyard::record
