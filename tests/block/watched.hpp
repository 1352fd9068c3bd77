// Watched processes (checked builds, sanitizers, Valgrind) hand blocks out in another order and keep pages: tests of
// order and pages say so and are skipped there.
#pragma once

#include <gtest/gtest.h>

#include "block/watch.hpp"

#define SKIP_IF_WATCHED()                                                                         \
  if (blockyard::block::process_is_watched()) {                                                   \
    GTEST_SKIP() << "skipped: this process is watched (checked build or sanitizer), where freed " \
                    "blocks wait and pages stay; run it in a release build";                      \
  }                                                                                               \
  static_assert(true)
