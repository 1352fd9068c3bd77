// The atomic type of everything in the heap and its pages that several threads touch.
//
// std::atomic in what is shipped. Compiled with BLOCKYARD_DELAYS it is that of tests/shared, which has a random
// delay before and after every operation, so that threads meet in the middle of things that otherwise take a
// nanosecond.
#pragma once

#include <atomic>

#if BLOCKYARD_DELAYS
#include "shared/delayed_atomic.hpp"
#endif

namespace blockyard::base {

#if BLOCKYARD_DELAYS
template <class T>
using Atomic = DelayedAtomic<T>;
#else
template <class T>
using Atomic = std::atomic<T>;
#endif

/// The atomic types of the lock-free protocols, which their tests replace.
struct StandardAtomics {
  template <class T>
  using atomic = Atomic<T>;
};

}  // namespace blockyard::base
