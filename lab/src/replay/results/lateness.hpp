// Counts how late events were.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace blockyard::replay {

/// Counts nanoseconds in buckets less than 1 % wide: percentiles of any number of values take 60 KiB.
class LatenessHistogram {
 public:
  LatenessHistogram() : buckets_(bucket_count, 0) {}
  void add(std::uint64_t ns);
  /// The upper bound of the first bucket at or below which at least `fraction` of the values lie; 0 without values.
  [[nodiscard]] std::uint64_t percentile(double fraction) const;
  [[nodiscard]] std::uint64_t max() const { return max_; }

 private:
  static constexpr unsigned sub_bits = 7;
  static constexpr std::size_t bucket_count = (64 - sub_bits + 1) << sub_bits;

  std::vector<std::uint64_t> buckets_;
  std::uint64_t count_ = 0;
  std::uint64_t max_ = 0;
};

}  // namespace blockyard::replay
