// The fuzzer's differential exercise on random bytes, so that every build runs a part of it.
#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "fuzz/lifetime/exercise_lifetimes.hpp"
#include "own_thread.hpp"

namespace {

TEST(Model, random_programs_agree_with_the_simple_model) {
  for (unsigned seed = 0; seed < 100; ++seed) {
    std::mt19937 random(seed);
    std::vector<std::uint8_t> bytes(3000);
    for (std::uint8_t& byte : bytes) {
      byte = static_cast<std::uint8_t>(random());
    }
    ASSERT_EQ(by_temp_configure(2048, 8192), 0);
    on_a_new_thread([&] {
      const char* const fault = lifetime_exercise::Exercise({bytes.data(), bytes.size()}).run();
      EXPECT_EQ(fault, nullptr) << fault << ", seed " << seed;
    });
  }
  by_temp_configure(std::size_t{256} << 10, std::size_t{4} << 20);
}

}  // namespace
