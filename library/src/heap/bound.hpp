// How often the heap's loops turn at most: what docs/reference/bounds.md states of each, asserted where BLOCKYARD_BOUNDS is set.
//
// That is in checked builds, in the fuzzers, and in the tests that drive the plain heap with its bounds asserted
// (tests/heap/bounds): there every loop of this list is shown to be counted, by one planted turn too many. Elsewhere it
// costs nothing.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#if BLOCKYARD_CHECKED && !defined(BLOCKYARD_BOUNDS)
#define BLOCKYARD_BOUNDS 1
#endif

#if BLOCKYARD_BOUNDS
#include <atomic>
#endif

namespace blockyard::heap {

/// Every loop that an operation may run but those over a fixed table (the size classes, the three states of free pages),
/// the retries of compare-and-exchange, each turn of which means that another thread got on, what turns until a clock
/// says stop (by_heap_frame_end, a round of the janitor), and the walkers, which are told to look at everything
/// (by_heap_check, by_heap_get_statistics).
enum class Loop : std::uint8_t {
  granules_of_slab,
  lists_adopted,
  blocks_copied,
  blocks_shed,
  lines_of_magazine,
  blocks_of_magazine,
  magazines_drained,
  places_mended,
  looks_at_page_lock,
  runs_in_work,
  pages_touched,
  table_pages,
  blocks_of_own_heap,
  slabs_of_own_heap,
  slabs_at_start,
  chunks_prefaulted,
  runs_trimmed,
  lists_for_purge,
  chunks_given_back,
  heaps_swept,
  blocks_settled,
  slabs_settled,
  surplus_slabs,
  spare_heaps,
  count
};

#if BLOCKYARD_BOUNDS

inline constexpr std::size_t loop_count = static_cast<std::size_t>(Loop::count);

/// In words, for reports; in the order of Loop.
const char* name_of(Loop loop);
[[noreturn]] void report_turns(Loop loop);

/// Most turns that a call has made of each loop, and what was allowed there. BLOCKYARD_HEAP_BOUNDS=1 prints them when
/// the process ends.
struct Turns {
  std::atomic<std::uint64_t> most{0};
  std::atomic<std::uint64_t> allowed{0};
  std::atomic<std::uint64_t> calls{0};  ///< that turned at least once
};
extern std::array<Turns, loop_count> turns_seen;

/// For tests: of this loop the first turn is one too many.
extern std::atomic<Loop> planted_turn;

/// Counts the turns of one loop of one call: more than stated is a fault of the heap itself, and reported.
template <Loop Which>
class Bound {
 public:
  /// `most`: a number, or a function that gives one, which builds without bounds never call.
  template <class Most>
  explicit Bound(const Most& most) : most_(number(most)) {
    if (planted_turn.load(std::memory_order_relaxed) == Which) {
      turns_ = most_;
    }
  }
  ~Bound() {
    Turns& seen = turns_seen[static_cast<std::size_t>(Which)];
    if (turns_ != 0) {
      seen.calls.fetch_add(1, std::memory_order_relaxed);
    }
    if (turns_ > seen.most.load(std::memory_order_relaxed)) {  // two at once may leave the lesser: figures, no check
      seen.most.store(turns_, std::memory_order_relaxed);
      seen.allowed.store(most_, std::memory_order_relaxed);
    }
  }
  Bound(const Bound&) = delete;
  Bound& operator=(const Bound&) = delete;

  void turn() {
    if (++turns_ > most_) {
      report_turns(Which);
    }
  }

 private:
  template <class Most>
  static std::uint64_t number(const Most& most) {
    if constexpr (std::is_invocable_v<const Most&>) {
      return static_cast<std::uint64_t>(most());
    } else {
      return static_cast<std::uint64_t>(most);
    }
  }

  std::uint64_t most_;
  std::uint64_t turns_ = 0;
};

#else

template <Loop Which>
class Bound {
 public:
  template <class Most>
  explicit constexpr Bound(const Most&) {}
  constexpr void turn() {}
};

#endif

}  // namespace blockyard::heap
