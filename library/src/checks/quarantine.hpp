// Freed blocks that wait before they may be handed out again, so that a use after the free meets poison or a page that
// nobody may touch, and not somebody else's block.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>

#include "base/pages.hpp"

namespace blockyard::checks {

/// What waits, in the order of its coming: a ring in its own pages that doubles and never shrinks. For one thread at a
/// time.
template <class Waiting>
class Quarantine {
  static_assert(std::is_trivially_copyable_v<Waiting>);

 public:
  /// Takes it in as the newest; false: memory is exhausted.
  bool push(const Waiting& one) {
    const std::size_t count = this->count();
    if (count == room_ && !grow()) {
      return false;
    }
    ring_[(first_ + count) & (room_ - 1)] = one;
    count_.store(count + 1, std::memory_order_relaxed);
    return true;
  }
  /// The oldest, out; there is one.
  Waiting pop() {
    count_.store(count() - 1, std::memory_order_relaxed);
    return ring_[std::exchange(first_, (first_ + 1) & (room_ - 1))];
  }
  void clear() {
    first_ = 0;
    count_.store(0, std::memory_order_relaxed);
  }
  /// Any thread.
  std::size_t count() const { return count_.load(std::memory_order_relaxed); }
  /// Gives its memory back; none waits any more.
  void release() {
    if (ring_ != nullptr) {
      base::release_pages(ring_, room_ * sizeof(Waiting));
    }
    ring_ = nullptr;
    room_ = 0;
    clear();
  }

 private:
  bool grow() {
    const std::size_t room = room_ == 0 ? 512 : room_ * 2;
    auto* const ring = static_cast<Waiting*>(base::reserve_pages(room * sizeof(Waiting)));
    if (ring == nullptr) {
      return false;
    }
    for (std::size_t i = 0; i < count(); ++i) {
      ring[i] = ring_[(first_ + i) & (room_ - 1)];
    }
    if (ring_ != nullptr) {
      base::release_pages(ring_, room_ * sizeof(Waiting));
    }
    ring_ = ring;
    room_ = room;
    first_ = 0;
    return true;
  }

  Waiting* ring_ = nullptr;
  std::size_t room_ = 0;
  std::size_t first_ = 0;
  std::atomic<std::size_t> count_{0};
};

/// The last so many: the next to come takes the place of the oldest, which leaves. Empty ones wait at first.
template <class Waiting, std::uint32_t most>
struct LastOnes {
  Waiting exchange(Waiting newest) {
    const std::uint32_t here = next;
    next = (here + 1) % most;
    return std::exchange(waiting[here], newest);
  }

  std::uint32_t next = 0;
  std::array<Waiting, most> waiting{};
};

}  // namespace blockyard::checks
