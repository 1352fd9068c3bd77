// Loop counts that the documentation states, asserted where BLOCKYARD_CHECKED is set.
#pragma once

#include <cstdint>

#include "heap/fault.hpp"

namespace blockyard::heap {

/// Counts the turns of one loop of one call: more than `Most` is a fault of the heap itself, reported with `what`.
/// Costs nothing in builds that are not checked.
template <std::uint32_t Most>
class Bound {
 public:
  explicit constexpr Bound([[maybe_unused]] const char* what) {
#if BLOCKYARD_CHECKED
    what_ = what;
#endif
  }
  constexpr void turn() {
#if BLOCKYARD_CHECKED
    if (++turns_ > Most) {
      report_broken(what_);
    }
#endif
  }

#if BLOCKYARD_CHECKED
 private:
  const char* what_;
  std::uint32_t turns_ = 0;
#endif
};

}  // namespace blockyard::heap
