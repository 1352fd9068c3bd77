// The fuzzer's differential exercise on random bytes, so that every build runs a part of it.
#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "blockyard/heap.h"
#include "fuzz/heap/exercise_heap.hpp"

namespace {

TEST(HeapShadowModel, random_operations_never_overlap_nor_change_a_live_block) {
  for (unsigned seed = 1; seed <= 4; ++seed) {
    std::mt19937 random(seed);
    std::vector<std::uint8_t> bytes(12'000);
    for (std::uint8_t& byte : bytes) {
      byte = static_cast<std::uint8_t>(random());
    }
    const char* const fault = heap_exercise::Exercise(bytes, ~std::size_t{0}).run();
    ASSERT_EQ(fault, nullptr) << fault << ", seed " << seed;
  }
  by_heap_reserve(0);
}

}  // namespace
