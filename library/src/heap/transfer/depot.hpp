// Freed blocks that threads hand to one another by the magazine, so that one thread's frees serve another's allocations
// and neither slab nor block is touched: the depot of Bonwick and Adams, "Magazines and Vmem", 2001.
//
// A thread that frees another's block and has no room for it leaves half of what it holds of the class here. A thread
// that has none left takes one magazine. Each costs one atomic exchange for up to 30 blocks (MagazineRing). To
// their slabs these blocks are in use.
//
// Bound: 128 KiB of blocks a class, 2.5 MiB if all 24 classes are full. Blocks are taken only of classes of which a
// thread recently found none, and go back to their slabs three ticks (48 ms) of the background thread's clock after
// that: a level that is freed leaves none here.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstdint>
#include <utility>

#include "base/atomic.hpp"
#include "base/bound.hpp"
#include "heap/size_class.hpp"
#include "heap/slab_tables.hpp"

namespace blockyard::heap {

/// Full magazines of one size class, which threads hand to one another, the oldest first.
///
/// A bounded queue whose slots have turns (D. Vyukov, "Bounded MPMC queue", 2010). The turn of a slot says whose it is:
/// even, to be filled; odd, full; two more each time round. `given` and `taken` count what was ever put in and taken
/// out. A thread that raises one of them by a compare-and-exchange owns that slot until it writes the slot's next turn.
/// They have 64 bits: there is no ABA.
///
/// A magazine costs each side one atomic exchange, on a line that only its side writes, and the lines of the slot. Both
/// sides know beforehand which slot comes next: no address is read from what another core has just written.
///
/// Nobody waits. A slot whose owner was interrupted in between is empty to takers and, a round later, full to givers,
/// who then go another way. In a forked child an owner may be gone for good: see mend().
template <class Atomics = StandardAtomics>
struct MagazineRing {
  using Word = typename Atomics::template atomic<std::uint64_t>;

  /// Where the next is put, or taken from, and how many slots there are, as a power of two. `turn_of` gives the turn
  /// of a slot.
  static std::uint64_t slot(std::uint64_t at, unsigned shift) { return at & ((std::uint64_t{1} << shift) - 1); }

  /// Calls fill(slot) for the next slot and publishes it. False: it is not free yet. Lock-free.
  template <class TurnOf, class Fill>
  static bool give(Word& given, unsigned shift, TurnOf&& turn_of, Fill&& fill) {
    return advance(given, shift, 0, turn_of, fill);
  }

  /// Calls use(slot) for the oldest magazine and gives its slot back. False: there is none. Lock-free.
  template <class TurnOf, class Use>
  static bool take(Word& taken, unsigned shift, TurnOf&& turn_of, Use&& use) {
    return advance(taken, shift, 1, turn_of, use);
  }

  /// Whether give() would find a slot at the moment.
  template <class TurnOf>
  static bool has_room(const Word& given, unsigned shift, TurnOf&& turn_of) {
    const std::uint64_t at = given.load(std::memory_order_relaxed);
    return turn_of(slot(at, shift)).load(std::memory_order_relaxed) == turn_at(at, shift, 0);
  }

  /// Whether take() would find one at the moment.
  template <class TurnOf>
  static bool has_full(const Word& taken, unsigned shift, TurnOf&& turn_of) {
    const std::uint64_t at = taken.load(std::memory_order_relaxed);
    return turn_of(slot(at, shift)).load(std::memory_order_relaxed) == turn_at(at, shift, 1);
  }

  /// Calls visit(slot) for every full one, the oldest first; racy while others use them, but ends.
  template <class TurnOf, class Visit>
  static void for_each_full(const Word& given, const Word& taken, unsigned shift, TurnOf&& turn_of, Visit&& visit) {
    const std::uint64_t first = taken.load(std::memory_order_relaxed);
    const std::uint64_t end = given.load(std::memory_order_relaxed);
    for (std::uint64_t at = first; at < end && at - first < std::uint64_t{1} << shift; ++at) {
      if (turn_of(slot(at, shift)).load(std::memory_order_relaxed) == turn_at(at, shift, 1)) {
        visit(slot(at, shift));
      }
    }
  }

  /// Makes every slot whose owner is gone usable again, what it held is lost: for a forked child, in which nobody else
  /// runs. move(from, to) copies a magazine. O(slots), and writes nothing where no owner was interrupted.
  template <class TurnOf, class Move>
  static void mend(Word& given, Word& taken, unsigned shift, TurnOf&& turn_of, Move&& move) {
    const std::uint64_t first = taken.load(std::memory_order_relaxed);
    const std::uint64_t end = given.load(std::memory_order_relaxed);
    std::uint64_t kept = first;
    base::Bound slots("slots of a ring mended in a forked child", std::uint64_t{1} << shift);
    for (std::uint64_t at = first; at < end; ++at) {
      slots.turn();
      if (turn_of(slot(at, shift)).load(std::memory_order_relaxed) == turn_at(at, shift, 1)) {
        if (kept != at) {
          move(slot(at, shift), slot(kept, shift));
        }
        ++kept;
      }
    }
    for (std::uint64_t at = first; at < first + (std::uint64_t{1} << shift); ++at) {
      Word& turn = turn_of(slot(at, shift));
      const std::uint64_t expected = turn_at(at, shift, at < kept ? 1 : 0);
      if (turn.load(std::memory_order_relaxed) != expected) {
        turn.store(expected, std::memory_order_relaxed);
      }
    }
    if (kept != end) {
      given.store(kept, std::memory_order_relaxed);
    }
  }

 private:
  static std::uint64_t turn_at(std::uint64_t at, unsigned shift, std::uint64_t full) {
    return (at >> shift) * 2 + full;
  }

  template <class TurnOf, class Do>
  static bool advance(Word& end, unsigned shift, std::uint64_t full, TurnOf& turn_of, Do& act) {
    std::uint64_t at = end.load(std::memory_order_relaxed);
    for (;;) {
      Word& turn = turn_of(slot(at, shift));
      // acquire: what the slot's last owner read or wrote there comes before what its next does.
      const std::uint64_t seen = turn.load(std::memory_order_acquire);
      const std::uint64_t expected = turn_at(at, shift, full);
      if (seen < expected) {
        return false;
      }
      if (seen > expected) {  // another thread got on meanwhile
        const std::uint64_t before = at;
        at = end.load(std::memory_order_relaxed);
        if (at == before) {
          return false;  // nobody did: an owner went on in a forked child, behind mend()
        }
      } else if (end.compare_exchange_weak(at, at + 1, std::memory_order_relaxed, std::memory_order_relaxed)) {
        act(slot(at, shift));
        turn.store(seen + 1, std::memory_order_release);
        return true;
      }
    }
  }
};

/// Blocks of a magazine of class `index`: half of what a thread caches.
constexpr std::uint32_t magazine_blocks(unsigned index) { return cache_capacity(index) / 2; }

/// Magazines that can wait of a class, as a power of two.
constexpr unsigned magazines_shift(unsigned index) {
  constexpr std::uint32_t bytes_a_class = 128u << 10;
  constexpr std::uint32_t most = 64;
  const std::uint32_t fitting = std::min(bytes_a_class / (magazine_blocks(index) * class_bytes(index)), most);
  return static_cast<unsigned>(std::bit_width(fitting)) - 1;
}

/// Where the magazines of a class lie among all: a table, since a division would delay the prefetch of their lines.
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
  /// Full, or empty.
  struct alignas(64) Magazine {
    Atomic<std::uint64_t> turn{0};  ///< of its slot: see MagazineRing
    std::array<void*, most_cached / 2> blocks{};
  };
  static_assert(sizeof(Magazine) == 256);

  /// Populates it.
  void populate() {
    for (Ends& each : ends_) {
      touch_without_change(&each);
    }
    for (Magazine& each : magazines_) {
      touch_without_change(&each);
    }
  }

  /// Calls fill(Magazine&) for an empty magazine of the class and hands it over. False: none is empty, or no
  /// thread misses the class. Lock-free.
  template <class Fill>
  bool give(unsigned size_class, std::uint16_t tick, Fill&& fill) {
    Givers& givers = ends_[size_class].givers;
    return is_missed(givers, tick) && Ring::give(givers.given, shift(size_class), Turns<true>{*this, size_class},
                                                 [&](std::uint64_t slot) { fill(magazine(size_class, slot)); });
  }

  /// Calls use(const Magazine&) for a full one. False: there is none, and the class is missed from now on. Lock-free.
  template <class Use>
  bool take(unsigned size_class, std::uint16_t tick, Use&& use) {
    Takers& takers = ends_[size_class].takers;
    // Said once a tick: the line is the givers'.
    if (const std::uint32_t now = std::uint32_t{tick} + 1; takers.written_at.load(std::memory_order_relaxed) != now) {
      takers.written_at.store(now, std::memory_order_relaxed);
      ends_[size_class].givers.missed_at.store(now, std::memory_order_relaxed);
    }
    // Who finds none does not ask for the lines of the blocks.
    return Ring::has_full(takers.taken, shift(size_class), Turns<false>{*this, size_class}) &&
           Ring::take(takers.taken, shift(size_class), Turns<true>{*this, size_class},
                      [&](std::uint64_t slot) { use(std::as_const(magazine(size_class, slot))); });
  }

  /// Prefetches what take() reads first: who comes here seldom finds it cold.
  void prefetch(unsigned size_class) {
    if (size_class < depot_classes) {
      prefetch_to_write(&ends_[size_class].takers);
    }
  }

  /// Likewise for give().
  void prefetch_to_give(unsigned size_class) {
    if (size_class < depot_classes) {
      __builtin_prefetch(&ends_[size_class].givers);
    }
  }

  /// Whether a thread looked for blocks of the class within the last ticks.
  bool is_missed(unsigned size_class, std::uint16_t tick) const { return is_missed(ends_[size_class].givers, tick); }

  /// Whether give() would find an empty one at the moment.
  bool has_room(unsigned size_class, std::uint16_t tick) {
    const Givers& givers = ends_[size_class].givers;
    return is_missed(givers, tick) && Ring::has_room(givers.given, shift(size_class), Turns<false>{*this, size_class});
  }

  /// Calls free(void*) for the blocks of classes that no thread misses any more (`all`: of all), of at most `most`
  /// magazines; of all that wait at most magazine_count. One thread at a time. Returns whether there was any.
  template <class Free>
  bool drain(std::uint16_t tick, bool all, std::uint32_t most, Free&& free) {
    std::uint32_t drained = 0;
    base::Bound magazines("magazines drained", most);
    for (unsigned size_class = 0; size_class < depot_classes && drained < most; ++size_class) {
      if (!all && !forget_missed(size_class, tick)) {
        continue;
      }
      const auto free_blocks = [&](std::uint64_t slot) {
        for (std::uint32_t each = 0; each < magazine_blocks(size_class); ++each) {
          free(magazine(size_class, slot).blocks[each]);
        }
      };
      while (drained < most && Ring::take(ends_[size_class].takers.taken, shift(size_class),
                                          Turns<false>{*this, size_class}, free_blocks)) {
        magazines.turn();
        ++drained;
      }
    }
    return drained != 0;
  }

  /// In a forked child, before anybody uses the heap there: what threads that are gone had begun.
  void mend_in_child() {
    for (unsigned size_class = 0; size_class < depot_classes; ++size_class) {
      Ends& ends = ends_[size_class];
      if (ends.givers.given.load(std::memory_order_relaxed) != 0) {
        Ring::mend(ends.givers.given, ends.takers.taken, shift(size_class), Turns<false>{*this, size_class},
                   [&](std::uint64_t from, std::uint64_t to) {
                     magazine(size_class, to).blocks = magazine(size_class, from).blocks;
                   });
      }
    }
  }

  /// Calls visit(const void* block, unsigned size_class) for every block that waits here; racy while threads use them,
  /// but ends. O(magazines).
  template <class Visit>
  void for_each(Visit&& visit) {
    for (unsigned size_class = 0; size_class < depot_classes; ++size_class) {
      const Ends& ends = ends_[size_class];
      Ring::for_each_full(ends.givers.given, ends.takers.taken, shift(size_class), Turns<false>{*this, size_class},
                          [&](std::uint64_t slot) {
                            for (std::uint32_t each = 0; each < magazine_blocks(size_class); ++each) {
                              visit(magazine(size_class, slot).blocks[each], size_class);
                            }
                          });
    }
  }

 private:
  using Ring = MagazineRing<>;

  // `with_blocks`: who reads a turn goes on to the blocks, behind an atomic operation that holds back what was not
  // prefetched before.
  template <bool with_blocks>
  struct Turns {
    Depot& depot;
    unsigned size_class;
    Atomic<std::uint64_t>& operator()(std::uint64_t slot) const {
      Magazine& magazine = depot.magazine(size_class, slot);
      void* const* const end = magazine.blocks.data() + magazine_blocks(size_class);
      for (auto line = reinterpret_cast<void* const*>(&magazine); with_blocks && line < end;
           line += 64 / sizeof(void*)) {
        prefetch_to_write(line);
      }
      return magazine.turn;
    }
  };

  // What those who hand over read first, and what those who take: a line each, which the others do not write.
  struct alignas(64) Givers {
    Atomic<std::uint64_t> given{0};
    Atomic<std::uint32_t> missed_at{0};  ///< the tick plus 1 at which a thread found none; 0: none did
  };
  struct alignas(64) Takers {
    Atomic<std::uint64_t> taken{0};
    Atomic<std::uint32_t> written_at{0};  ///< what a taker wrote to missed_at last
  };
  struct Ends {
    Givers givers;
    Takers takers;
  };

  static constexpr std::uint16_t missed_for = 3;  // ticks

  static unsigned shift(unsigned size_class) { return depot_plans[size_class].shift; }

  static bool is_missed(const Givers& givers, std::uint16_t tick) {
    const std::uint32_t at = givers.missed_at.load(std::memory_order_relaxed);
    return at != 0 && static_cast<std::uint16_t>(tick + 1 - at) < missed_for;
  }

  Magazine& magazine(unsigned size_class, std::uint64_t slot) {
    return magazines_[depot_plans[size_class].first + slot];
  }

  // Whether no thread misses the class any more; then it is not missed again when the tick has gone round.
  bool forget_missed(unsigned size_class, std::uint16_t tick) {
    Givers& givers = ends_[size_class].givers;
    if (is_missed(givers, tick)) {
      return false;
    }
    if (givers.missed_at.load(std::memory_order_relaxed) != 0) {
      givers.missed_at.store(0, std::memory_order_relaxed);
    }
    return true;
  }

  std::array<Ends, depot_classes> ends_{};
  std::array<Magazine, magazine_count> magazines_{};
};

inline constinit Depot process_depot;

}  // namespace blockyard::heap
