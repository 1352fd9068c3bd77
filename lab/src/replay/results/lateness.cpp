#include "replay/results/lateness.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

namespace blockyard::replay {

void LatenessHistogram::add(std::uint64_t ns) {
  const unsigned exponent = static_cast<unsigned>(std::bit_width(ns >> sub_bits));
  // Below 2^sub_bits each value has its own bucket. Above, each octave has 2^sub_bits buckets of the same width.
  const std::size_t bucket =
      exponent == 0 ? ns : (std::size_t{exponent} << sub_bits) + ((ns >> (exponent - 1)) & ((1u << sub_bits) - 1));
  ++buckets_[std::min(bucket, bucket_count - 1)];
  ++count_;
  max_ = std::max(max_, ns);
}

std::uint64_t LatenessHistogram::percentile(double fraction) const {
  if (count_ == 0) return 0;
  const auto wanted = static_cast<std::uint64_t>(std::ceil(fraction * static_cast<double>(count_)));
  std::uint64_t seen = 0;
  for (std::size_t bucket = 0; bucket < bucket_count; ++bucket) {
    seen += buckets_[bucket];
    if (seen < wanted || seen == 0) continue;
    const std::size_t exponent = bucket >> sub_bits;
    const std::size_t sub = bucket & ((1u << sub_bits) - 1);
    if (exponent == 0) return sub;
    const std::uint64_t begin = ((std::uint64_t{1} << sub_bits) | sub) << (exponent - 1);
    return std::min(max_, begin + (std::uint64_t{1} << (exponent - 1)) - 1);
  }
  return max_;
}

}  // namespace blockyard::replay
