// Allocator time by group of events: whatever the caller numbers, such as a call stack within a stretch of time.
#include <algorithm>

#include "samples/latency.hpp"

namespace blockyard::samples {

namespace {

constexpr auto as_run = static_cast<std::size_t>(View::as_run);
constexpr auto inherent = static_cast<std::size_t>(View::inherent);
constexpr auto attributed = static_cast<std::size_t>(View::attributed);
constexpr std::size_t views = 3;
/// Groups come in no order: fetched so many rows ahead, their sums take a third of the time.
constexpr std::uint64_t ahead = 16;
constexpr std::uint32_t none = std::numeric_limits<std::uint32_t>::max();

}  // namespace
}  // namespace blockyard::samples

using namespace blockyard::samples;

int by_samples_group_times(const by_samples_run* runs, std::uint32_t run_count, std::uint64_t rows,
                           const by_samples_grouping* grouping, double* sums, double* weighted) {
  const double* const weights[] = {grouping->as_run, grouping->inherent, grouping->attributed};  // by View
  for (std::uint64_t i = 0; i < rows; ++i) {
    if (const std::uint64_t later = i + ahead; later < rows && grouping->group[later] != none) {
      __builtin_prefetch(&sums[std::size_t{grouping->group[later]} * views], 1);
      if (grouping->frame != nullptr) __builtin_prefetch(&weighted[std::size_t{grouping->group[later]} * views], 1);
    }
    const std::uint32_t group = grouping->group[i];
    if (group == none) continue;
    const std::uint32_t frame = grouping->frame != nullptr ? grouping->frame[i] : none;
    double sum[views] = {};
    double part[views] = {};
    const auto add = [&](std::size_t view, std::size_t run, double ticks) {
      sum[view] += ticks;
      if (frame != none) part[view] += ticks * weights[view][run * grouping->frame_count + frame];
    };
    std::uint32_t least = saturated;
    std::size_t struck = 0;
    for (std::size_t r = 0; r < run_count; ++r) {
      const Row& row = row_of(runs[r], i);
      const std::uint32_t ticks = latency(row, runs[r]).both;
      least = std::min(least, ticks);
      add(as_run, r, ticks);
      if (by_machine(row)) [[unlikely]]
        ++struck;
      else
        add(attributed, r, ticks);
    }
    if (returns(struck, run_count)) [[unlikely]]
      for (std::size_t r = 0; r < run_count; ++r) add(attributed, r, least);
    add(inherent, 0, least);
    const std::size_t place = std::size_t{group} * views;  // a group's sums lie in one line of the cache
    for (std::size_t view = 0; view < views; ++view) {
      sums[place + view] += sum[view];
      if (part[view] != 0) weighted[place + view] += part[view];
    }
  }
  return 0;
}
