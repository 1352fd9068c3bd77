// What the behaviour programs share. Each runs on libblockyard-malloc.so put under it by LD_PRELOAD, as a user would.
#pragma once

#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "blockyard/heap.h"

// Weak: the program itself is linked against nothing of Blockyard's, the preloaded library supplies them.
#pragma weak by_check
#pragma weak by_heap_read_statistics

namespace behaviour {

/// Ends the test as failed with a sentence unless `holds`.
inline void require(bool holds, const char* sentence) {
  if (!holds) {
    std::fprintf(stderr, "FAILED: %s\n", sentence);
    std::_Exit(1);
  }
}

/// The heap under test is really there, and every invariant holds. No other thread may be allocating.
inline void require_sound_heap() {
  require(by_check != nullptr, "libblockyard-malloc.so is not under this program");
  const char* const broken = by_check();
  require(broken == nullptr, broken == nullptr ? "" : broken);
}

inline by_heap_statistics statistics() {
  by_heap_statistics values{};
  by_heap_read_statistics(&values);
  return values;
}

}  // namespace behaviour
