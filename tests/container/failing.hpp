// Allocation that fails on demand: every block, every array of a container, and the test program's operator new.
#pragma once

#include <cstddef>

namespace blockyard {

/// The process is watched (BLOCKYARD_CHECK), so that no allocation of a block evades the countdown.
class Failing {
 public:
  /// The allocation after `countdown` more fails, and all later ones.
  static void fail_after(int countdown);
  static void never_fail();
  /// What lives: blocks, and allocations by operator new.
  static std::size_t live();
};

}  // namespace blockyard
