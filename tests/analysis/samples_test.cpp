// The C interface at its edges; the preset asan runs it with AddressSanitizer and UBSan as well.
#include "samples/samples.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <vector>

#include "samples/row.hpp"

namespace {

using blockyard::samples::Row;

std::vector<Row> random_rows(std::size_t count, unsigned seed) {
  std::mt19937 sizes(1);  // the same events whatever the seed
  std::mt19937 times(seed);
  std::vector<Row> rows(count);
  for (std::size_t i = 0; i < count; ++i) {
    rows[i] = {static_cast<std::uint32_t>(i),
               static_cast<std::uint8_t>(sizes() % 5),
               0,
               0,
               sizes() >> (sizes() % 32),
               i * 100,
               static_cast<std::uint32_t>(times() >> (times() % 32)),
               static_cast<std::uint32_t>(times() >> (times() % 32)),
               0};
  }
  return rows;
}

class Samples : public testing::TestWithParam<std::uint32_t> {
 protected:
  // Rows are 36 bytes and files begin anywhere: one byte past an aligned address is as good as any.
  void SetUp() override {
    for (unsigned repeat = 0; repeat < 3; ++repeat) {
      const std::vector<Row> rows = random_rows(count, repeat + 1);
      bytes[repeat].resize(count * sizeof(Row) + 1);
      std::memcpy(bytes[repeat].data() + 1, rows.data(), count * sizeof(Row));
      runs[repeat] = {bytes[repeat].data() + 1, 7, 3, repeat == 2 ? 1.25 : 1.0};
    }
  }

  static constexpr std::size_t count = 10'001;
  std::vector<char> bytes[3];
  by_samples_run runs[3]{};
};

TEST_P(Samples, rows_fed_in_pieces_give_the_same_distribution) {
  by_samples_digest* whole = by_samples_digest_new(GetParam(), 100, 2);
  by_samples_digest* pieces = by_samples_digest_new(GetParam(), 100, 2);
  ASSERT_EQ(by_samples_digest_feed(whole, runs, 3, count, 0).what, 0U);
  for (std::size_t begin = 0; begin < count; begin += 4999) {
    by_samples_run part[3];
    for (int i = 0; i < 3; ++i) {
      part[i] = runs[i];
      part[i].rows = static_cast<const char*>(runs[i].rows) + begin * sizeof(Row);
    }
    ASSERT_EQ(
        by_samples_digest_feed(pieces, part, 3, std::min<std::size_t>(4999, count - begin), begin == 0 ? 1 : 0).what,
        0U);
  }
  std::vector<std::uint32_t> ticks[2] = {std::vector<std::uint32_t>(count), std::vector<std::uint32_t>(count)};
  std::vector<std::uint64_t> counts[2] = {std::vector<std::uint64_t>(count), std::vector<std::uint64_t>(count)};
  by_samples_digest_copy(whole, 1, 1, 1, UINT32_MAX, UINT32_MAX, ticks[0].data(), counts[0].data(), count);
  by_samples_digest_copy(pieces, 1, 1, 1, UINT32_MAX, UINT32_MAX, ticks[1].data(), counts[1].data(), count);
  EXPECT_EQ(ticks[0], ticks[1]);
  EXPECT_EQ(counts[0], counts[1]);
  by_samples_digest_delete(whole);
  by_samples_digest_delete(pieces);
}

TEST_P(Samples, a_fault_names_the_row_counted_from_the_first_feed) {
  by_samples_digest* digest = by_samples_digest_new(GetParam(), 100, 2);
  ASSERT_EQ(by_samples_digest_feed(digest, runs, 3, count, 0).what, 0U);
  const by_samples_fault fault = by_samples_digest_feed(digest, runs, 3, count, 0);  // event 0 again
  EXPECT_EQ(fault.what, 2U);
  EXPECT_EQ(fault.row, count);
  by_samples_digest_delete(digest);
}

TEST_P(Samples, bins_stay_inside_their_grid_for_any_latency_and_time) {
  const by_samples_frame frame{37, 11, 5000.0, 900'000.0, 0.5, 3e3, 26, {1000, 1000, 1000, 1000, 1000, 1000}};
  by_samples_bins* bins = by_samples_bin(runs, 3, count, &frame, GetParam());
  ASSERT_NE(bins, nullptr);
  std::uint64_t binned = 0;
  for (std::uint32_t each = 0; each < 2; ++each) {
    const by_samples_plane plane = by_samples_bins_plane(bins, each);
    for (std::uint32_t cell = 0; cell < 37 * 11; ++cell) {
      binned += plane.counts[cell];
      EXPECT_TRUE(plane.counts[cell] > 0 || plane.sizes[cell] == 0);
    }
    for (std::size_t i = 0; i < plane.mark_count; ++i) EXPECT_GE(plane.marks[i].ticks, 1000U);
  }
  EXPECT_EQ(binned, 3U * (9000 - 50));
  by_samples_bins_delete(bins);
}

TEST_P(Samples, no_rows_give_nothing) {
  by_samples_digest* digest = by_samples_digest_new(GetParam(), 100, 2);
  EXPECT_EQ(by_samples_digest_feed(digest, runs, 3, 0, 1).what, 0U);
  EXPECT_EQ(by_samples_digest_copy(digest, 0, 1, 1, UINT32_MAX, UINT32_MAX, nullptr, nullptr, 0), 0U);
  by_samples_digest_delete(digest);
}

INSTANTIATE_TEST_SUITE_P(Threads, Samples, testing::Values(0U, 1U, 2U, 99U));

}  // namespace
