#include "samples/groups.hpp"

#include <algorithm>

namespace blockyard::samples {

namespace {

constexpr auto as_run = static_cast<std::size_t>(View::as_run);
constexpr auto inherent = static_cast<std::size_t>(View::inherent);
constexpr auto attributed = static_cast<std::size_t>(View::attributed);

}  // namespace

GroupTimes group_times(std::span<const Run> runs, std::uint64_t rows, const Grouping& grouping) {
  GroupTimes found;
  const bool weigh = !grouping.frame.empty();
  for (auto& sums : found.sums) sums.resize(grouping.groups);
  for (auto& sums : found.weighted) sums.resize(weigh ? grouping.groups : 0);

  for (std::uint64_t i = 0; i < rows; ++i) {
    const std::uint32_t group = grouping.group[i];
    if (group == Grouping::none) continue;
    const std::uint32_t frame = weigh ? grouping.frame[i] : Grouping::none;
    const auto add = [&](std::size_t view, std::size_t run, double ticks) {
      found.sums[view][group] += ticks;
      if (frame != Grouping::none)
        found.weighted[view][group] += ticks * grouping.weights[view][run * grouping.frames + frame];
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
  return found;
}

}  // namespace blockyard::samples
