#include "samples/groups.hpp"

#include <algorithm>

namespace blockyard::samples {

namespace {

constexpr auto as_run = static_cast<std::size_t>(View::as_run);
constexpr auto inherent = static_cast<std::size_t>(View::inherent);
constexpr auto attributed = static_cast<std::size_t>(View::attributed);
constexpr std::uint32_t none = std::numeric_limits<std::uint32_t>::max();

}  // namespace

void group_times(std::span<const Run> runs, std::uint64_t rows, const by_samples_grouping& grouping, double* sums,
                 double* weighted) {
  const double* const weights[] = {grouping.as_run, grouping.inherent, grouping.attributed};  // by View
  for (std::uint64_t i = 0; i < rows; ++i) {
    const std::uint32_t group = grouping.group[i];
    if (group == none) continue;
    const std::uint32_t frame = grouping.frame != nullptr ? grouping.frame[i] : none;
    const auto add = [&](std::size_t view, std::size_t run, double ticks) {
      const std::size_t place = view * grouping.group_count + group;
      sums[place] += ticks;
      if (frame != none) weighted[place] += ticks * weights[view][run * grouping.frame_count + frame];
    };
    std::uint32_t least = saturated;
    std::size_t struck = 0;
    for (std::size_t r = 0; r < runs.size(); ++r) {
      const Row& row = runs[r].rows[i];
      const std::uint32_t ticks = latency(row, runs[r]).both;
      least = std::min(least, ticks);
      add(as_run, r, ticks);
      if (by_machine(row)) [[unlikely]]
        ++struck;
      else
        add(attributed, r, ticks);
    }
    if (returns(struck, runs.size())) [[unlikely]]
      for (std::size_t r = 0; r < runs.size(); ++r) add(attributed, r, least);
    add(inherent, 0, least);
  }
}

}  // namespace blockyard::samples
