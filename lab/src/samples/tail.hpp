// Counts latencies that are too slow and too few for a table, exactly, in memory that stops growing when there are no
// new values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace blockyard::samples {

/// How often each latency occurred, in rising order of latency.
struct Distribution {
  std::vector<std::uint32_t> ticks;
  std::vector<std::uint64_t> counts;
};

/// Both together. O(n).
Distribution merged(const Distribution& left, const Distribution& right);

/// Keeps values as they come. When there are many, folds them into counts of distinct ones. Memory: 4 bytes per value
/// up to 65,536 of them, then 16 bytes per distinct value. Amortised O(log n) per value. Throws std::bad_alloc.
class Tail {
 public:
  void add(std::uint32_t ticks) {
    fresh_.push_back(ticks);
    if (fresh_.size() >= fold_at_) [[unlikely]]
      fold();
  }

 private:
  friend class TailSum;
  static constexpr std::size_t least_fold = std::size_t{1} << 16;

  void fold();

  std::vector<std::uint32_t> fresh_;  ///< in no order
  Distribution folded_;
  std::size_t fold_at_ = least_fold;
};

/// Several tails as one.
class TailSum {
 public:
  /// The tail must outlive the sum and not change.
  void add(const Tail& tail);
  [[nodiscard]] bool empty() const { return fresh_.empty() && folded_.empty(); }
  [[nodiscard]] Distribution sum() const;

 private:
  std::vector<std::uint32_t> fresh_;
  std::vector<const Distribution*> folded_;
};

}  // namespace blockyard::samples
