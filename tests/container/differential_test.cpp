// Short runs of the differential fuzzers' exercises on pseudo-random input. tests/fuzz runs the same for as long as
// wanted.
#include <gtest/gtest.h>

#include <cstdint>
#include <random>
#include <vector>

#include "fuzz/block/exercise_blocks.hpp"
#include "fuzz/container/exercise_hash_map.hpp"
#include "fuzz/container/exercise_list.hpp"
#include "fuzz/container/exercise_ordered.hpp"

namespace {

template <class Exercise>
void run(Exercise&& exercise, unsigned kinds, std::size_t bytes) {
  for (unsigned round = 0; round < 3 * kinds; ++round) {
    std::mt19937 random(round + 1);
    std::vector<std::uint8_t> input(bytes);
    for (std::uint8_t& byte : input) {
      byte = static_cast<std::uint8_t>(random());
    }
    input[0] = static_cast<std::uint8_t>(round % kinds);
    exercise(input);
  }
}

TEST(Differential, list_does_what_std_list_does) { run(blockyard::fuzz::exercise_list, 6, 30'000); }

TEST(Differential, hash_map_does_what_unordered_map_with_an_order_does) {
  run(blockyard::fuzz::exercise_hash_map, 7, 60'000);
}

TEST(Differential, rb_map_and_rb_set_do_what_map_and_set_do) { run(blockyard::fuzz::exercise_ordered, 10, 60'000); }

TEST(Differential, blocks_never_overlap_and_counts_stay_right) { run(blockyard::fuzz::exercise_blocks, 8, 2'000); }

}  // namespace
