/// blockyard::allocator<T>: static blocks for the standard's containers: std::list, std::map, std::set,
/// std::unordered_map, ...
///
/// Single objects of up to 1 MiB come from static blocks (bounds: static_block_allocator.hpp); arrays come from
/// operator new, so that a container's bucket array costs what it costs elsewhere. Empty, all instances are equal,
/// memory may be freed on any thread. Throws std::bad_alloc when memory is exhausted.
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
    if (count > std::numeric_limits<std::size_t>::max() / sizeof(T)) {
      throw std::bad_array_new_length();
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
