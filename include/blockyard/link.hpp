/// How containers refer to their nodes: by 32 bits where all nodes lie in the window of the block allocators, else by
/// pointer.
#ifndef BLOCKYARD_LINK_HPP
#define BLOCKYARD_LINK_HPP

#include <cstddef>
#include <cstdint>

#include "blockyard/block_slab.hpp"

namespace blockyard {

/// A pointer to a block in 32 bits: the distance from the window's base in 8-byte units; 0 is null.
template <class T>
class NearLink {
 public:
  constexpr NearLink() = default;
  explicit NearLink(T* target) noexcept {
    if (target != nullptr) {
      const std::byte* const address = reinterpret_cast<const std::byte*>(target);
      units_ =
          static_cast<std::uint32_t>(static_cast<std::size_t>(address - block::by_block_window.base) / block::unit);
    }
  }
  [[nodiscard]] T* get() const noexcept { return units_ == 0 ? nullptr : certain(); }
  /// get() of a link that is not null: no test.
  [[nodiscard]] T* certain() const noexcept {
    return reinterpret_cast<T*>(block::by_block_window.base + std::size_t{units_} * block::unit);
  }
  [[nodiscard]] explicit operator bool() const noexcept { return units_ != 0; }
  friend bool operator==(NearLink, NearLink) = default;

 private:
  std::uint32_t units_ = 0;
};

/// The same interface over a plain pointer.
template <class T>
class FarLink {
 public:
  constexpr FarLink() = default;
  explicit FarLink(T* target) noexcept : target_(target) {}
  [[nodiscard]] T* get() const noexcept { return target_; }
  [[nodiscard]] T* certain() const noexcept { return target_; }
  [[nodiscard]] explicit operator bool() const noexcept { return target_ != nullptr; }
  friend bool operator==(FarLink, FarLink) = default;

 private:
  T* target_ = nullptr;
};

}  // namespace blockyard

#endif
