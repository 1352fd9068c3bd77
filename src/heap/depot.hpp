// Freed blocks that threads hand to one another by the magazine, so that one thread's frees serve another's allocations
// without a look at a slab or at a block: the depot of Bonwick and Adams, "Magazines and Vmem", 2001.
//
// A thread that frees another's block and has no room at hand leaves half of what it holds of the class here; a thread
// that finds none at hand takes one magazine. Two changes of a lock-free stack each for up to 14 blocks, in the corner
// of the core that the thread runs on if it can be (shelves.hpp). To their slabs these blocks are in use.
//
// Bound: 64 KiB of blocks a class, 40 classes, 2 MiB if all are full. Blocks are taken only of classes that a thread
// lately wanted and found none of, and go back to their slabs when that is three ticks (48 ms) of the janitor's clock
// ago: a level that is freed leaves none here.
#pragma once

#include <sched.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "heap/atomic.hpp"
#include "heap/shelves.hpp"
#include "heap/size_class.hpp"

/// Of glibc 2.35 and later: where the kernel's restartable sequences have their area, from the thread pointer on.
extern "C" [[gnu::weak]] const std::ptrdiff_t __rseq_offset;

namespace blockyard::heap {

/// Classes of blocks up to 2 KiB: of longer ones a thread holds too few for a magazine to be worth it.
inline constexpr unsigned depot_classes = 8 + 4 * 8;
static_assert(class_bytes(depot_classes - 1) == 2048);

/// Blocks of a magazine of class `index`: half of what a thread keeps at hand.
constexpr std::uint32_t magazine_blocks(unsigned index) { return at_hand_capacity(index) / 2; }

constexpr std::uint32_t magazines_of(unsigned index) {
  constexpr std::uint32_t bytes_a_class = 64u << 10;
  constexpr std::uint32_t most = 36;
  return std::min(bytes_a_class / (magazine_blocks(index) * class_bytes(index)), most);
}

inline constexpr std::uint32_t magazine_count = [] {
  std::uint32_t count = 0;
  for (unsigned index = 0; index < depot_classes; ++index) {
    count += magazines_of(index);
  }
  return count;
}();

class Depot {
 public:
  static constexpr unsigned classes = depot_classes;
  static constexpr std::uint32_t blocks_of(unsigned index) { return magazine_blocks(index); }

  /// Always full, or empty.
  struct alignas(64) Magazine {
    std::array<void*, most_at_hand / 2> blocks{};
    Atomic<std::uint32_t> next{0};  ///< link in its stack
  };
  static_assert(sizeof(Magazine) == 128);

  /// Makes all magazines empty ones, once, before any other call; populates them.
  void initialise();

  /// An empty magazine of the class to be filled, its index; 0: none, or none of the class is wanted. Lock-free.
  std::uint32_t take_empty(unsigned size_class, std::uint16_t tick) {
    return is_wanted(demand_[size_class], tick) ? Shelves<>::take_empty(corners_[size_class], here(), link_) : 0;
  }
  void give_full(unsigned size_class, std::uint32_t index) {
    Shelves<>::give_full(corners_[size_class], demand_[size_class].filled, here(), index, link_);
  }

  /// A full one, its index; 0: there is none, and the class is wanted from now on. Lock-free.
  std::uint32_t take_full(unsigned size_class, std::uint16_t tick) {
    Demand& demand = demand_[size_class];
    // Not written again in the same tick: the line is every thread's.
    if (const std::uint32_t now = std::uint32_t{tick} + 1; demand.wanted_at.load(std::memory_order_relaxed) != now) {
      demand.wanted_at.store(now, std::memory_order_relaxed);
    }
    return Shelves<>::take_full(corners_[size_class], demand.filled, here(), link_);
  }
  void give_empty(unsigned size_class, std::uint32_t index) {
    Shelves<>::give_empty(corners_[size_class], here(), index, link_);
  }

  Magazine& magazine(std::uint32_t index) { return magazines_[index]; }

  /// Asks for the lines that the other calls for the class look at first: who comes here seldom finds them cold, and
  /// each atomic operation holds back every load behind it.
  void prefetch(unsigned size_class) {
    if (size_class < classes) {
      __builtin_prefetch(&demand_[size_class]);
      __builtin_prefetch(&corners_[size_class][here()], 1);
    }
  }

  /// Whether take_empty would find one at the moment.
  bool has_room(unsigned size_class, std::uint16_t tick) const {
    return is_wanted(demand_[size_class], tick) && std::any_of(corners_[size_class].begin(), corners_[size_class].end(),
                                                               [](const auto& each) { return !each.empty.empty(); });
  }

  /// Frees the blocks of classes that nobody wants any more (`all`: of all) into their slabs, at most `most` magazines.
  /// One thread at a time. Returns whether there was any.
  bool drain(std::uint16_t tick, bool all, std::uint32_t most);

  /// Bytes of the blocks that wait here; racy.
  std::uint64_t bytes() const;
  /// Null, or what is broken; nobody may use the heap meanwhile. O(magazines).
  const char* check() const;

 private:
  // Cores share a corner beyond that. More would be more lines to look at in vain.
  static constexpr unsigned corner_count = 4;
  using Corners = std::array<Shelves<>::Corner, corner_count>;

  // What every thread reads of a class and seldom writes.
  struct Demand {
    Atomic<std::uint32_t> wanted_at{0};  ///< the janitor's tick plus 1; 0: not wanted
    Atomic<std::uint32_t> filled{0};     ///< see shelves.hpp
  };

  static constexpr std::uint16_t wanted_for = 3;  // ticks

  static bool is_wanted(const Demand& demand, std::uint16_t tick) {
    const std::uint32_t at = demand.wanted_at.load(std::memory_order_relaxed);
    return at != 0 && static_cast<std::uint16_t>(tick + 1 - at) < wanted_for;
  }

  // The corner of the core that the calling thread runs on; a core that cannot be told is the first. Read where the
  // kernel writes it for each thread (0 where it does not): sched_getcpu reads it there too, but who seldom calls it
  // waits for three cold lines of code and addresses.
  static unsigned here() {
    if (&__rseq_offset != nullptr) [[likely]] {
      // Its first word is the core.
      const auto* const area = static_cast<const char*>(__builtin_thread_pointer()) + __rseq_offset;
      return __atomic_load_n(reinterpret_cast<const std::uint32_t*>(area), __ATOMIC_RELAXED) % corner_count;
    }
    return static_cast<unsigned>(std::max(sched_getcpu(), 0)) % corner_count;
  }

  // Calls visit(size_class, magazine) for every full magazine; racy while threads use them, but ends.
  template <class Visit>
  void for_each_full(Visit&& visit) const;

  struct Links {
    Depot& depot;
    Atomic<std::uint32_t>& operator()(std::uint32_t index) const { return depot.magazines_[index].next; }
  };

  std::array<Corners, classes> corners_{};
  alignas(64) std::array<Demand, classes> demand_{};
  Links link_{*this};
  std::array<Magazine, magazine_count + 1> magazines_{};  // [0] is none
};

extern constinit Depot depot;

}  // namespace blockyard::heap
