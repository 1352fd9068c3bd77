// What a run leaves: the rows of samples.npy and memory.npy, in the layout of docs/architecture.md.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "replay/plan_file.hpp"
#include "replay/session.hpp"
#include "replay/watch.hpp"

namespace blockyard::replay {

/// Counts nanoseconds in buckets less than 1 % wide: percentiles of any number of values in 60 KiB.
class LatenessHistogram {
 public:
  LatenessHistogram() : buckets_(bucket_count, 0) {}
  void add(std::uint64_t ns);
  /// The least upper bound of a bucket that at least `fraction` of the values lie at or below; 0 without values.
  [[nodiscard]] std::uint64_t percentile(double fraction) const;
  [[nodiscard]] std::uint64_t max() const { return max_; }

 private:
  static constexpr unsigned sub_bits = 7;
  static constexpr std::size_t bucket_count = (64 - sub_bits + 1) << sub_bits;

  std::vector<std::uint64_t> buckets_;
  std::uint64_t count_ = 0;
  std::uint64_t max_ = 0;
};

/// Writes `folder`/samples.npy: the threads' records merged into the journal's order, in constant memory. Returns how
/// late events were against the journal's clock (empty at `--pace max`). Throws journal::Error when the disk is full.
LatenessHistogram write_samples(const std::string& folder, const PlanFile& plan, const Session& session);

void write_memory(const std::string& folder, std::span<const MemoryRow> rows);

}  // namespace blockyard::replay
