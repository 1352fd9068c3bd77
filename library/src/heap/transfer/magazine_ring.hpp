// Full magazines of one size class, which threads hand to one another, the oldest first.
//
// A bounded queue whose slots have turns (D. Vyukov, "Bounded MPMC queue", 2010). The turn of a slot says whose it
// is: even, to be filled; odd, full; two more each time round. `given` and `taken` count what was ever put in and taken
// out. A thread that raises one of them by a compare-and-exchange owns that slot until it writes the slot's next
// turn. They have 64 bits: there is no ABA.
//
// A magazine costs each side one atomic exchange, on a line that only its side writes, and the lines of the slot. Both
// sides know beforehand which slot comes next: no address is read from what another core has just written.
//
// Nobody waits. A slot whose owner was interrupted in between is empty to takers and, a round later, full to givers,
// who then go another way. In a forked child an owner may be gone for good: see mend().
#pragma once

#include <atomic>
#include <cstdint>

#include "base/atomic.hpp"
#include "base/bound.hpp"

namespace blockyard::heap {

using base::StandardAtomics;

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

}  // namespace blockyard::heap
