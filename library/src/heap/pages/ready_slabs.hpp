// Slabs that stand ready: cut in advance and populated, so that taking one needs neither a lock nor a page fault.
#pragma once

#include <array>
#include <cstdint>

#include "base/atomic.hpp"
#include "heap/index_stack.hpp"
#include "heap/settings.hpp"
#include "heap/slab_tables.hpp"

namespace blockyard::heap {

/// One stack for each length of slab. A slab is named by its first slice; 0 is none. Thread-safe and lock-free.
class ReadySlabs {
 public:
  static constexpr std::array<std::uint32_t, 3> lengths{1, 2, 4};  ///< slices

  /// How many of a length the background thread keeps. Longer slabs are taken far less often: an eighth as many of
  /// each.
  static std::uint32_t target(std::uint32_t slices) {
    const auto slabs = static_cast<std::uint32_t>(settings.ready_slabs);
    return slices == 1 ? slabs : slabs / 8;
  }

  /// How many of a length there are; racy.
  std::uint32_t count(std::uint32_t slices) const { return of_[slices >> 1].count.load(std::memory_order_relaxed); }

  /// The slab given last; 0: there is none.
  std::uint32_t take(std::uint32_t slices) {
    OneLength& slabs = of_[slices >> 1];
    const std::uint32_t slice = slabs.stack.pop(link);
    if (slice != 0) {
      slabs.count.fetch_sub(1, std::memory_order_relaxed);
    }
    return slice;
  }

  void give(std::uint32_t slice, std::uint32_t slices) {
    OneLength& slabs = of_[slices >> 1];
    slabs.count.fetch_add(1, std::memory_order_relaxed);
    slabs.stack.push(slice, link);
  }

  /// Pages of all of them; racy.
  std::uint64_t pages() const {
    std::uint64_t sum = 0;
    for (const std::uint32_t length : lengths) {
      sum += std::uint64_t{count(length)} * length * pages_per_slice;
    }
    return sum;
  }

 private:
  struct OneLength {
    IndexStack<> stack;
    Atomic<std::uint32_t> count{0};
  };

  static Atomic<std::uint32_t>& link(std::uint32_t slice) { return region.remote_frees[slice].pending_next; }

  std::array<OneLength, lengths.size()> of_{};
};

}  // namespace blockyard::heap
