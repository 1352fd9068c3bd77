// Freed blocks that threads hand to one another by the magazine, so that one thread's frees serve another's allocations
// without a look at a slab or at a block: the depot of Bonwick and Adams, "Magazines and Vmem", 2001.
//
// A thread that frees another's block and has no room for it leaves half of what it holds of the class here. A thread
// that has none left takes one magazine. Each costs one atomic exchange for up to 30 blocks (magazine_ring.hpp). To their
// slabs these blocks are in use.
//
// Bound: 128 KiB of blocks a class, 24 classes, 3 MiB if all are full. Blocks are taken only of classes of which a thread
// recently found none, and go back to their slabs three ticks (48 ms) of the janitor's clock after that: a level that is
// freed leaves none here.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "heap/atomic.hpp"
#include "heap/bound.hpp"
#include "heap/magazine_ring.hpp"
#include "heap/prefetch.hpp"
#include "heap/size_class.hpp"

namespace blockyard::heap {

/// Blocks of a magazine of class `index`: half of what a thread keeps at hand.
constexpr std::uint32_t magazine_blocks(unsigned index) { return at_hand_capacity(index) / 2; }

/// Magazines that can wait of a class, as a power of two.
constexpr unsigned magazines_shift(unsigned index) {
  constexpr std::uint32_t bytes_a_class = 128u << 10;
  constexpr std::uint32_t most = 64;
  const std::uint32_t fitting = std::min(bytes_a_class / (magazine_blocks(index) * class_bytes(index)), most);
  return static_cast<unsigned>(std::bit_width(fitting)) - 1;
}

/// Where the magazines of a class lie among all: looked up, since a division would stand between a call and its lines.
struct DepotPlan {
  std::uint16_t first = 0;
  std::uint8_t shift = 0;
};
inline constexpr std::array<DepotPlan, depot_classes> depot_plans = [] {
  std::array<DepotPlan, depot_classes> plans{};
  std::uint32_t first = 0;
  for (unsigned index = 0; index < depot_classes; ++index) {
    plans[index] = {static_cast<std::uint16_t>(first), static_cast<std::uint8_t>(magazines_shift(index))};
    first += 1u << magazines_shift(index);
  }
  return plans;
}();
inline constexpr std::uint32_t magazine_count = depot_plans.back().first + (1u << depot_plans.back().shift);

class Depot {
 public:
  static constexpr unsigned classes = depot_classes;
  static constexpr std::uint32_t blocks_of(unsigned index) { return magazine_blocks(index); }

  /// Full, or empty.
  struct alignas(64) Magazine {
    Atomic<std::uint64_t> turn{0};  ///< of its place: see magazine_ring.hpp
    std::array<void*, most_at_hand / 2> blocks{};
  };
  static_assert(sizeof(Magazine) == 256);

  /// Populates it, once, before any other call.
  void initialise();

  /// Calls fill(Magazine&) for an empty magazine of the class and hands it over. False: none is empty, or none of the
  /// class is wanted. Lock-free.
  template <class Fill>
  bool give(unsigned size_class, std::uint16_t tick, Fill&& fill) {
    Givers& its = ends_[size_class].givers;
    return is_wanted(its, tick) && Ring::give(its.given, shift(size_class), TurnsToWrite{*this, size_class},
                                              [&](std::uint64_t place) { fill(magazine(size_class, place)); });
  }

  /// Calls use(const Magazine&) for a full one. False: there is none, and the class is wanted from now on. Lock-free.
  template <class Use>
  bool take(unsigned size_class, std::uint16_t tick, Use&& use) {
    Takers& its = ends_[size_class].takers;
    // Said once a tick: the line is the givers'.
    if (const std::uint32_t now = std::uint32_t{tick} + 1; its.said_at.load(std::memory_order_relaxed) != now) {
      its.said_at.store(now, std::memory_order_relaxed);
      ends_[size_class].givers.wanted_at.store(now, std::memory_order_relaxed);
    }
    // Who finds none does not ask for the lines of the blocks.
    return Ring::has_full(its.taken, shift(size_class), Turns{*this, size_class}) &&
           Ring::take(its.taken, shift(size_class), TurnsToWrite{*this, size_class},
                      [&](std::uint64_t place) { use(std::as_const(magazine(size_class, place))); });
  }

  /// Asks for the line that take() looks at first: who comes here seldom finds it cold.
  void prefetch(unsigned size_class) {
    if (size_class < classes) {
      prefetch_to_write(&ends_[size_class].takers);
    }
  }

  /// Likewise for give().
  void prefetch_to_give(unsigned size_class) {
    if (size_class < classes) {
      __builtin_prefetch(&ends_[size_class].givers);
    }
  }

  /// Whether give() would find an empty one at the moment.
  bool has_room(unsigned size_class, std::uint16_t tick) {
    const Givers& its = ends_[size_class].givers;
    return is_wanted(its, tick) && Ring::has_room(its.given, shift(size_class), Turns{*this, size_class});
  }

  /// Frees the blocks of classes that nobody wants any more (`all`: of all) into their slabs, at most `most` magazines,
  /// of all that wait at most magazine_count. One thread at a time. Returns whether there was any.
  bool drain(std::uint16_t tick, bool all, std::uint32_t most);

  /// In a forked child, before anybody uses the heap there: what threads that are gone had begun.
  void mend_in_child();

  /// Bytes of the blocks that wait here; racy.
  std::uint64_t bytes();
  /// Null, or what is broken; nobody may use the heap meanwhile. O(magazines).
  const char* check();

 private:
  using Ring = MagazineRing<>;

  struct Turns {
    Depot& depot;
    unsigned size_class;
    Atomic<std::uint64_t>& operator()(std::uint64_t place) const { return depot.magazine(size_class, place).turn; }
  };
  // Who looks at a turn goes on to the blocks, behind an atomic operation that holds back what was not asked for before.
  struct TurnsToWrite {
    Depot& depot;
    unsigned size_class;
    Atomic<std::uint64_t>& operator()(std::uint64_t place) const {
      Magazine& its = depot.magazine(size_class, place);
      void* const* const end = its.blocks.data() + blocks_of(size_class);
      Bound<Loop::lines_of_magazine> lines(sizeof(Magazine) / 64);
      for (auto line = reinterpret_cast<void* const*>(&its); line < end; line += 64 / sizeof(void*)) {
        lines.turn();
        prefetch_to_write(line);
      }
      return its.turn;
    }
  };

  // What those who hand over look at first, and what those who take: a line each, which the others do not write.
  struct alignas(64) Givers {
    Atomic<std::uint64_t> given{0};
    Atomic<std::uint32_t> wanted_at{0};  ///< the janitor's tick plus 1; 0: not wanted
  };
  struct alignas(64) Takers {
    Atomic<std::uint64_t> taken{0};
    Atomic<std::uint32_t> said_at{0};  ///< what a taker wrote to wanted_at last
  };
  struct Ends {
    Givers givers;
    Takers takers;
  };

  static constexpr std::uint16_t wanted_for = 3;  // ticks

  static unsigned shift(unsigned size_class) { return depot_plans[size_class].shift; }

  static bool is_wanted(const Givers& givers, std::uint16_t tick) {
    const std::uint32_t at = givers.wanted_at.load(std::memory_order_relaxed);
    return at != 0 && static_cast<std::uint16_t>(tick + 1 - at) < wanted_for;
  }

  Magazine& magazine(unsigned size_class, std::uint64_t place) {
    return magazines_[depot_plans[size_class].first + place];
  }

  // Calls visit(size_class, magazine) for every full magazine; racy while threads use them, but ends.
  template <class Visit>
  void for_each_full(Visit&& visit);

  std::array<Ends, classes> ends_{};
  std::array<Magazine, magazine_count> magazines_{};
};

extern constinit Depot depot;

}  // namespace blockyard::heap
