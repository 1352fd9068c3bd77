/// blockyard::allocator<T>: static blocks for the standard's containers: std::list, std::map, std::set,
/// std::unordered_map, ...
///
/// Single objects of up to 1 MiB come from the static pools, with the bounds of static_block_allocator.hpp. Arrays,
/// such as a hash table's buckets, come from operator new. The allocator is empty, all instances are equal, and any
/// thread may free. allocate() throws std::bad_alloc when memory is exhausted, std::bad_array_new_length for more
/// objects than half of the address space holds.
#ifndef BLOCKYARD_ALLOCATOR_HPP
#define BLOCKYARD_ALLOCATOR_HPP

#include <cstddef>
#include <limits>
#include <new>
#include <type_traits>

#include "blockyard/static_block_allocator.hpp"

namespace blockyard {

template <class T>
class allocator {
 public:
  using value_type = T;
  using is_always_equal = std::true_type;
  using propagate_on_container_move_assignment = std::true_type;

  constexpr allocator() noexcept = default;
  template <class U>
  constexpr allocator(const allocator<U>&) noexcept {}  // NOLINT: the standard asks for a conversion

  [[nodiscard]] T* allocate(std::size_t count) {
    if constexpr (in_blocks) {
      if (count == 1) [[likely]] {
        return static_cast<T*>(TypedStaticBlockAllocator<T>::allocate());
      }
    }
    if (count > std::size_t{std::numeric_limits<std::ptrdiff_t>::max()} / sizeof(T)) {
      block::throw_bad_array_new_length();
    }
    return static_cast<T*>(::operator new (count * sizeof(T), std::align_val_t{alignment}));
  }

  void deallocate(T* first, std::size_t count) noexcept {
    if constexpr (in_blocks) {
      if (count == 1) [[likely]] {
        TypedStaticBlockAllocator<T>::deallocate(first);
        return;
      }
    }
    ::operator delete (first, std::align_val_t{alignment});
  }

  template <class U>
  friend constexpr bool operator==(const allocator&, const allocator<U>&) noexcept {
    return true;
  }

 private:
  static constexpr bool in_blocks = sizeof(T) <= block::max_block_bytes && alignof(T) <= block::max_alignment;
  static constexpr std::size_t alignment =
      alignof(T) < __STDCPP_DEFAULT_NEW_ALIGNMENT__ ? __STDCPP_DEFAULT_NEW_ALIGNMENT__ : alignof(T);
};

}  // namespace blockyard

#endif
