/// Numbers that others read while one thread changes them. Included by block_slab.hpp.
#ifndef BLOCKYARD_DETAIL_RELAXED_HPP
#define BLOCKYARD_DETAIL_RELAXED_HPP

#include "blockyard/detail/cpp20.hpp"

#include <atomic>

namespace blockyard::block {

/// A number with one writer that other threads may read for statistics: relaxed loads and stores.
template <class T>
class Relaxed {
 public:
  constexpr Relaxed() = default;
  constexpr Relaxed(T value) : value_(value) {}  // NOLINT: converts like the number that it is
  Relaxed(const Relaxed&) = delete;
  operator T() const { return value_.load(std::memory_order_relaxed); }  // NOLINT
  T operator=(T value) {                                                 // NOLINT
    value_.store(value, std::memory_order_relaxed);
    return value;
  }
  void operator=(const Relaxed&) = delete;
  void operator+=(T value) { *this = static_cast<T>(*this + value); }
  void operator-=(T value) { *this = static_cast<T>(*this - value); }

 private:
  std::atomic<T> value_{};
};

}  // namespace blockyard::block

#endif
