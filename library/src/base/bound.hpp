// How often the heap's loops turn at most, where that is not plain from the loop itself: asserted where
// BLOCKYARD_BOUNDS is set, and free of cost elsewhere.
//
// It is set in checked builds, in the fuzzers, and in the tests that drive the plain heap with its bounds asserted
// (tests/heap/bounds): there every loop is shown to be counted, by one planted turn too many.
#pragma once

#if BLOCKYARD_CHECKED && !defined(BLOCKYARD_BOUNDS)
#define BLOCKYARD_BOUNDS 1
#endif

#if BLOCKYARD_BOUNDS
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <type_traits>

#include "base/say.hpp"
#endif

namespace blockyard::base {

#if BLOCKYARD_BOUNDS

/// For tests, before the heap is readied: of the loop of this name the first turn is one too many.
inline constinit const char* planted_turn = nullptr;

/// Counts the turns of one loop of one call: more than stated is a fault of the heap itself, and reported.
class Bound {
 public:
  /// `loop` names it in reports. `most`: a number, or a function that gives one, which builds without bounds never
  /// call.
  template <class Most>
  Bound(const char* loop, const Most& most) : loop_(loop) {
    if (planted_turn != nullptr && std::strcmp(planted_turn, loop) == 0) {
      left_ = 0;
    } else if constexpr (std::is_invocable_v<const Most&>) {
      left_ = static_cast<std::uint64_t>(most());
    } else {
      left_ = static_cast<std::uint64_t>(most);
    }
  }

  void turn() {
    if (left_-- == 0) {
      say("blockyard: the heap itself is broken: more turns of a loop than stated: %s\n", loop_);
      std::abort();
    }
  }

 private:
  const char* loop_;
  std::uint64_t left_;
};

#else

struct Bound {
  template <class Most>
  constexpr Bound(const char*, const Most&) {}
  constexpr void turn() {}
};

#endif

}  // namespace blockyard::base
