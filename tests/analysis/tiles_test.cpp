// The page's histograms: every event is counted once in each view, or is one of the single ones.
#include "samples/latency.hpp"

#include <gtest/gtest.h>

#include <numeric>
#include <random>
#include <span>
#include <vector>

namespace blockyard::samples {
namespace {

constexpr std::size_t events = 10'007;
constexpr std::uint32_t columns = 64;
constexpr std::uint32_t all_bins = 514;
constexpr std::size_t tile_planes = 8;

struct Tiles {
  std::vector<std::uint32_t> counts[tile_planes];
  std::vector<std::uint32_t> latencies;
};

Tiles tile(std::span<const samples::Run> runs, std::uint64_t rows, const by_samples_tile_frame& frame,
           std::span<const std::uint64_t> single, std::size_t threads) {
  const std::size_t cells = std::size_t{frame.columns} * frame.bins;
  std::vector<std::uint32_t> counts(tile_planes * cells);
  Tiles found;
  found.latencies.resize(single.size() * runs.size());
  by_samples_tile(runs.data(), static_cast<std::uint32_t>(runs.size()), rows, &frame, single.data(), single.size(),
                  static_cast<std::uint32_t>(threads), counts.data(), found.latencies.data());
  for (std::size_t plane = 0; plane < tile_planes; ++plane)
    found.counts[plane].assign(&counts[plane * cells], &counts[plane * cells] + cells);
  return found;
}

Row row(std::uint32_t event, std::uint8_t kind, std::uint64_t start, std::uint32_t call, std::uint8_t cause = 0) {
  return {event, kind, cause, 0, 64, start, call, 0, 0};
}

std::uint64_t total(const std::vector<std::uint32_t>& counts) {
  return std::accumulate(counts.begin(), counts.end(), std::uint64_t{0});
}

class Tiling : public testing::TestWithParam<std::size_t> {
 protected:
  void SetUp() override {
    std::mt19937 random(7);
    for (std::uint32_t i = 0; i < events; ++i) {
      const auto kind = static_cast<std::uint8_t>(random() % 5);
      for (auto& repeat : rows) {
        const std::uint8_t cause = i % 50 == 7 || random() % 9 == 0 ? 1 | 8 : 1;
        repeat.push_back(row(i, kind, i * 1000ULL, static_cast<std::uint32_t>(random() >> (random() % 32)), cause));
      }
      frees += kind == kind_free;
    }
    runs = {{rows[0].data(), 5, 3, 1.0}, {rows[1].data(), 5, 3, 1.25}};
  }

  Tiles tiled(std::span<const std::uint64_t> single) {
    return tile(runs, events, {columns, all_bins, 16, 0, events * 1000.0, 2.0}, single, GetParam());
  }

  std::vector<Row> rows[2];
  std::vector<samples::Run> runs;
  std::uint64_t frees = 0;
};

TEST_P(Tiling, counts_every_repeat_once_and_the_least_of_all_once) {
  const Tiles found = tiled({});
  EXPECT_EQ(total(found.counts[0]), 2 * (events - frees));
  EXPECT_EQ(total(found.counts[1]), 2 * frees);
  EXPECT_EQ(total(found.counts[4]), events - frees);
  EXPECT_EQ(total(found.counts[5]), frees);
}

TEST_P(Tiling, leaves_the_single_events_out_and_tells_their_latencies) {
  const std::vector<std::uint64_t> single{0, 17, 5003, 5004, events - 1};
  const Tiles found = tiled(single);
  EXPECT_EQ(total(found.counts[4]) + total(found.counts[5]), events - single.size());
  ASSERT_EQ(found.latencies.size(), single.size() * 2);
  for (std::size_t i = 0; i < single.size(); ++i) {
    for (std::size_t r = 0; r < 2; ++r)
      EXPECT_EQ(found.latencies[i * 2 + r], latency(rows[r][single[i]], runs[r]).both);
  }
}

TEST_P(Tiling, counts_what_the_machine_did_apart_in_the_same_cells) {
  const Tiles found = tiled({});
  std::uint64_t machine = 0;
  for (const auto& repeat : rows) {
    for (const Row& each : repeat) machine += by_machine(each);
  }
  EXPECT_EQ(total(found.counts[2]) + total(found.counts[3]), machine);
  for (std::size_t plane = 0; plane < 2; ++plane) {
    for (std::size_t cell = 0; cell < found.counts[plane].size(); ++cell)
      ASSERT_LE(found.counts[2 + plane][cell], found.counts[plane][cell]);
  }
}

TEST_P(Tiling, counts_the_least_of_what_the_machine_struck_every_time_once_for_each_repeat) {
  const Tiles found = tiled({});
  std::uint64_t every = 0;
  for (std::size_t i = 0; i < events; ++i) every += by_machine(rows[0][i]) && by_machine(rows[1][i]);
  EXPECT_EQ(total(found.counts[6]) + total(found.counts[7]), 2 * every);
  for (std::size_t plane = 0; plane < 2; ++plane) {
    for (std::size_t cell = 0; cell < found.counts[plane].size(); ++cell) {
      ASSERT_LE(found.counts[6 + plane][cell], 2 * found.counts[4 + plane][cell]);  // where inherent has them
      ASSERT_TRUE(found.counts[6 + plane][cell] == 0 || found.counts[plane][cell] != 0);
    }
  }
  runs.pop_back();
  const Tiles lone = tiled({});
  EXPECT_EQ(total(lone.counts[6]) + total(lone.counts[7]), 0U);
}

INSTANTIATE_TEST_SUITE_P(Threads, Tiling, testing::Values(1, 2));

TEST(TilingCells, a_bin_holds_latencies_of_its_width_alone) {
  const std::uint32_t ticks[] = {0, 1, 2, 3, 100, 65'535, 65'536, 1'000'000, saturated};
  std::vector<Row> rows;
  for (std::uint32_t i = 0; i < std::size(ticks); ++i) rows.push_back(row(i, 0, i, ticks[i]));
  const samples::Run run{rows.data(), 0, 0, 1.0};
  const Tiles found =
      tile({&run, 1}, rows.size(),
           {static_cast<std::uint32_t>(rows.size()), all_bins, 16, 0, static_cast<double>(rows.size()), 2.0}, {}, 1);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const auto begin = found.counts[0].begin() + static_cast<std::ptrdiff_t>(i * all_bins);
    const auto place = std::find(begin, begin + all_bins, 1U);
    ASSERT_NE(place, begin + all_bins);
    const auto bin = static_cast<std::uint32_t>(place - begin);
    const double ns = ticks[i] / 2.0;
    if (ticks[i] == 0) {
      EXPECT_EQ(bin, 0U);
    } else {
      EXPECT_GE(std::max(ns, 1.0), std::exp2((bin - 1) / 16.0) * 0.999999);
      EXPECT_LT(std::max(ns, 1.0), std::exp2(bin / 16.0) * 1.000001);
    }
  }
}

TEST(TilingCells, what_lies_beyond_the_edges_of_time_falls_into_the_last_columns) {
  const std::vector<Row> rows{row(0, 0, 0, 10), row(1, 0, 50, 10), row(2, 0, 5'000, 10)};
  const samples::Run run{rows.data(), 0, 0, 1.0};
  const Tiles found = tile({&run, 1}, rows.size(), {4, all_bins, 16, 10, 110, 1.0}, {}, 1);
  std::vector<std::uint64_t> by_column;
  for (std::size_t column = 0; column < 4; ++column) {
    const auto begin = found.counts[0].begin() + static_cast<std::ptrdiff_t>(column * all_bins);
    by_column.push_back(std::accumulate(begin, begin + all_bins, std::uint64_t{0}));
  }
  EXPECT_EQ(by_column, (std::vector<std::uint64_t>{1, 1, 0, 1}));
}

TEST(TilingCells, no_rows_make_empty_histograms) {
  const samples::Run run{nullptr, 0, 0, 1.0};
  const Tiles found = tile({&run, 1}, 0, {4, all_bins, 16, 0, 100, 1.0}, {}, 2);
  for (const auto& plane : found.counts) EXPECT_EQ(total(plane), 0U);
}

}  // namespace
}  // namespace blockyard::samples
