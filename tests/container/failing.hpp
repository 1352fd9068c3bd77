// Allocation that fails on demand: every block, every array of a container, and the test program's operator new.
#pragma once

#include <cstddef>

namespace blockyard {

/// The process is watched (BLOCKYARD_CHECKS), so that the countdown sees every allocation of a block.
class Failing {
 public:
  /// After `countdown` more allocations, all fail.
  static void fail_after(int countdown);
  static void never_fail();
  /// Live blocks and allocations by operator new.
  static std::size_t live();
};

}  // namespace blockyard
