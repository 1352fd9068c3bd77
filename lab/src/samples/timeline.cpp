#include "samples/timeline.hpp"

#include <algorithm>

namespace blockyard::samples {

Timeline timeline(std::span<const Row> rows, std::uint64_t bin_ns, std::uint64_t longest_ns) {
  Timeline found;
  std::size_t bin = 0;
  for (const Row& row : rows) {
    const std::uint64_t start = row.start;
    found.latest_ns = std::max(found.latest_ns, start);
    if (found.latest_ns > longest_ns) return found;
    // Divides only where a bin begins: most events fall into the bin of the one before.
    if (found.latest_ns >= (bin + 1) * bin_ns) bin = static_cast<std::size_t>(found.latest_ns / bin_ns);
    if (found.first_event.size() <= bin) {
      found.first_event.resize(bin + 1, row.event);
      found.mallocs.resize(bin + 1);
      found.frees.resize(bin + 1);
    }
    if (found.by_thread.size() <= row.thread) found.by_thread.resize(row.thread + std::size_t{1});
    ++found.by_thread[row.thread];
    found.mallocs[bin] += row.kind != kind_free;
    found.frees[bin] += row.kind == kind_free || row.kind == kind_reallocate;
  }
  if (!rows.empty()) found.end_event = rows.back().event + std::uint64_t{1};
  return found;
}

void first_events(std::span<const Row> rows, std::uint32_t thread, std::span<const double> boundaries_ns,
                  std::span<std::uint64_t> found) {
  std::uint64_t latest = 0;
  std::size_t done = 0;
  for (const Row& row : rows) {
    if (thread != any_thread && row.thread != thread) continue;
    const std::uint64_t start = row.start;
    latest = std::max(latest, start);
    while (done < boundaries_ns.size() && boundaries_ns[done] <= static_cast<double>(latest)) found[done++] = row.event;
    if (done == boundaries_ns.size()) return;
  }
  const std::uint64_t end = rows.empty() ? 0 : rows.back().event + std::uint64_t{1};
  std::fill(found.begin() + static_cast<std::ptrdiff_t>(done), found.end(), end);
}

}  // namespace blockyard::samples
