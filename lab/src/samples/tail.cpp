#include "samples/tail.hpp"

#include <algorithm>

namespace blockyard::samples {
namespace {

Distribution counted(std::vector<std::uint32_t> values) {
  std::sort(values.begin(), values.end());
  Distribution result;
  for (const std::uint32_t ticks : values) {
    if (!result.ticks.empty() && result.ticks.back() == ticks) {
      ++result.counts.back();
    } else {
      result.ticks.push_back(ticks);
      result.counts.push_back(1);
    }
  }
  return result;
}

}  // namespace

Distribution merged(const Distribution& left, const Distribution& right) {
  Distribution result;
  result.ticks.reserve(left.ticks.size() + right.ticks.size());
  result.counts.reserve(left.ticks.size() + right.ticks.size());
  for (std::size_t l = 0, r = 0; l < left.ticks.size() || r < right.ticks.size();) {
    const bool has_left = l < left.ticks.size() && (r == right.ticks.size() || left.ticks[l] <= right.ticks[r]);
    const bool has_right = r < right.ticks.size() && (l == left.ticks.size() || right.ticks[r] <= left.ticks[l]);
    result.ticks.push_back(has_left ? left.ticks[l] : right.ticks[r]);
    result.counts.push_back((has_left ? left.counts[l] : 0) + (has_right ? right.counts[r] : 0));
    l += has_left;
    r += has_right;
  }
  return result;
}

void Tail::fold() {
  folded_ = merged(folded_, counted(std::move(fresh_)));
  fresh_ = {};
  fold_at_ = std::max(least_fold, folded_.ticks.size());  // so that merging stays a constant share of the work
}

void TailSum::add(const Tail& tail) {
  fresh_.insert(fresh_.end(), tail.fresh_.begin(), tail.fresh_.end());
  if (!tail.folded_.ticks.empty()) folded_.push_back(&tail.folded_);
}

Distribution TailSum::sum() const {
  Distribution result = counted(fresh_);
  for (const Distribution* folded : folded_) result = merged(result, *folded);
  return result;
}

}  // namespace blockyard::samples
