// How often the heap's loops turn at most, where that is not plain from the loop itself: asserted where
// BLOCKYARD_BOUNDS is set, and free of cost elsewhere.
//
// It is set in checked builds, in the fuzzers, and in the tests that drive the plain heap with its bounds asserted
// (tests/heap/bounds): there every loop of this list is shown to be counted, by one planted turn too many.
#pragma once

#include <cstdint>
#include <type_traits>

#if BLOCKYARD_CHECKED && !defined(BLOCKYARD_BOUNDS)
#define BLOCKYARD_BOUNDS 1
#endif

#if BLOCKYARD_BOUNDS
#include <array>
#include <atomic>
#include <cstdlib>

#include "base/say.hpp"
#endif

namespace blockyard::base {

enum class Loop : std::uint8_t {
  lists_adopted,
  blocks_trimmed,
  magazines_drained,
  slots_mended,
  runs_in_work,
  pages_populated,
  table_pages,
  lists_for_purge,
  chunks_given_back,
  blocks_flushed,
  slabs_flushed,
  blocks_of_arena,
  slabs_of_arena,
  count
};

#if BLOCKYARD_BOUNDS

/// In words and in this order, for reports.
inline constexpr std::array<const char*, static_cast<std::size_t>(Loop::count)> loop_names{
    "lists of remote frees adopted",
    "cached blocks trimmed",
    "magazines drained",
    "slots of a ring mended in a forked child",
    "runs in work given up in a forked child",
    "pages populated at once",
    "pages of a table populated",
    "lists searched for what to purge",
    "chunks given back at once",
    "cached blocks of a parked heap flushed",
    "empty slabs of a parked heap given back",
    "blocks of whole pages of an arena destroyed",
    "slabs of an arena destroyed",
};

/// For tests: of this loop the first turn is one too many.
inline constinit std::atomic<Loop> planted_turn{Loop::count};

/// Counts the turns of one loop of one call: more than stated is a fault of the heap itself, and reported.
template <Loop Which>
class Bound {
 public:
  /// `most`: a number, or a function that gives one, which builds without bounds never call.
  template <class Most>
  explicit Bound(const Most& most) {
    if (planted_turn.load(std::memory_order_relaxed) == Which) {
      left_ = 0;
    } else if constexpr (std::is_invocable_v<const Most&>) {
      left_ = static_cast<std::uint64_t>(most());
    } else {
      left_ = static_cast<std::uint64_t>(most);
    }
  }

  void turn() {
    if (left_-- == 0) {
      say("blockyard: the heap itself is broken: more turns of a loop than stated: %s\n",
          loop_names[static_cast<std::size_t>(Which)]);
      std::abort();
    }
  }

 private:
  std::uint64_t left_ = 0;
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

}  // namespace blockyard::base
