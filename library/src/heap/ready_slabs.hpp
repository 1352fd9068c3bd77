// Slabs that stand ready: cut in advance and populated, so that who wants one takes neither a lock nor a page fault.
#pragma once

#include <array>
#include <cstdint>

#include "heap/atomic.hpp"
#include "heap/index_stack.hpp"
#include "heap/region.hpp"
#include "heap/settings.hpp"

namespace blockyard::heap {

/// One stack for each length of slab. A slab is named by its first granule; 0 is none. Thread-safe and lock-free.
class ReadySlabs {
 public:
  static constexpr std::array<std::uint32_t, 3> lengths{1, 2, 4};  ///< granules

  /// How many of a length the janitor keeps. Longer slabs are taken far less often: an eighth as many of each.
  static std::uint32_t target(std::uint32_t granules) {
    const std::uint32_t slabs = settings.ready_slabs;
    return granules == 1 ? slabs : slabs / 8;
  }

  /// How many of a length there are; racy.
  std::uint32_t count(std::uint32_t granules) const { return of_[granules >> 1].count.load(std::memory_order_relaxed); }

  /// The slab given last; 0: there is none.
  std::uint32_t take(std::uint32_t granules) {
    OneLength& slabs = of_[granules >> 1];
    const std::uint32_t granule = slabs.stack.pop(link);
    if (granule != 0) {
      slabs.count.fetch_sub(1, std::memory_order_relaxed);
    }
    return granule;
  }

  void give(std::uint32_t granule, std::uint32_t granules) {
    OneLength& slabs = of_[granules >> 1];
    slabs.count.fetch_add(1, std::memory_order_relaxed);
    slabs.stack.push(granule, link);
  }

  /// Granules of all of them; racy.
  std::uint32_t granules() const {
    std::uint32_t sum = 0;
    for (const std::uint32_t length : lengths) {
      sum += count(length) * length;
    }
    return sum;
  }

 private:
  struct OneLength {
    IndexStack<> stack;
    Atomic<std::uint32_t> count{0};
  };

  static Atomic<std::uint32_t>& link(std::uint32_t granule) { return region.directory[granule].pending_next; }

  std::array<OneLength, lengths.size()> of_{};
};

}  // namespace blockyard::heap
