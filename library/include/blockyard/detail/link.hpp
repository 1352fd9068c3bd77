/// Links: how containers refer to their nodes. 32 bits where all nodes lie in the window of the block allocators, else
/// a pointer. Included by node_blocks.hpp and the parts of the containers.
#ifndef BLOCKYARD_DETAIL_LINK_HPP
#define BLOCKYARD_DETAIL_LINK_HPP

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "blockyard/detail/block_slab.hpp"

namespace blockyard {

/// Makes a link that is not initialised, for one that is written before it is read.
struct Unset {};

/// A pointer to a block in 32 bits (block_slab.hpp); 0 is null. NearLink<void> links blocks whose stride is a multiple
/// of 8.
template <class T>
class NearLink {
 public:
  constexpr NearLink() noexcept : units_(0) {}
  explicit NearLink(Unset) noexcept {}  // NOLINT: leaves units_ as it is
  explicit NearLink(T* target) noexcept : units_(target == nullptr ? 0 : block::near_link(target, shift())) {}
  [[nodiscard]] T* get() const noexcept { return units_ == 0 ? nullptr : get_unchecked(); }
  /// get() of a link that is not null, without a test.
  [[nodiscard]] T* get_unchecked() const noexcept { return static_cast<T*>(block::near_target(units_, shift())); }
  [[nodiscard]] explicit operator bool() const noexcept { return units_ != 0; }
  friend bool operator==(NearLink, NearLink) = default;

 private:
  // A function, since T is mostly incomplete where a link to it is a member.
  static constexpr unsigned shift() noexcept {
    if constexpr (std::is_void_v<T>) {
      return 3;
    } else {
      return block::near_shift_of(block::stride_of(sizeof(T), alignof(T)));
    }
  }

  std::uint32_t units_;
};

/// The same interface over a plain pointer.
template <class T>
class FarLink {
 public:
  constexpr FarLink() noexcept : target_(nullptr) {}
  explicit FarLink(Unset) noexcept {}  // NOLINT: leaves target_ as it is
  explicit FarLink(T* target) noexcept : target_(target) {}
  [[nodiscard]] T* get() const noexcept { return target_; }
  [[nodiscard]] T* get_unchecked() const noexcept { return target_; }
  [[nodiscard]] explicit operator bool() const noexcept { return target_ != nullptr; }
  friend bool operator==(FarLink, FarLink) = default;

 private:
  T* target_;
};

}  // namespace blockyard

#endif
