// The merge: a heap of lanes by the stamp of their oldest record, with runs of one lane applied at a stretch.
#include "record/collect/merge.hpp"

#include <algorithm>
#include <vector>

namespace blockyard::record {
namespace {

struct Head {
  std::uint64_t stamp;
  Lane* lane;
};

bool is_later(const Head& left, const Head& right) { return left.stamp > right.stamp; }

void apply_front(Lane& lane, RecordSink& sink) {
  const std::uint64_t* record = lane.front();
  sink.apply(lane.thread(), lane.front_stamp(), record);
  lane.pop();
}

/// Several lanes hold records of one and the same stamp: the order among them is whatever makes sense of each.
std::size_t apply_ties(std::vector<Lane*>& tied, std::uint64_t stamp, RecordSink& sink) {
  std::size_t applied = 0;
  while (!tied.empty()) {
    auto next = std::find_if(tied.begin(), tied.end(), [&](Lane* lane) { return sink.is_possible(lane->front()); });
    if (next == tied.end()) next = tied.begin();
    apply_front(**next, sink);
    ++applied;
    if ((*next)->empty() || (*next)->front_stamp() != stamp) tied.erase(next);
  }
  return applied;
}

}  // namespace

std::size_t merge(std::span<Lane* const> lanes, std::uint64_t watermark, std::size_t budget, RecordSink& sink) {
  std::vector<Head> heads;
  const auto push = [&](Lane* lane) {
    if (lane->empty() || lane->front_stamp() >= watermark) return;
    heads.push_back({lane->front_stamp(), lane});
    std::push_heap(heads.begin(), heads.end(), is_later);
  };
  for (Lane* lane : lanes) push(lane);
  std::size_t applied = 0;
  std::vector<Lane*> tied;
  while (!heads.empty() && applied < budget) {
    std::pop_heap(heads.begin(), heads.end(), is_later);
    const Head head = heads.back();
    heads.pop_back();
    if (!heads.empty() && heads.front().stamp == head.stamp) {
      tied.assign(1, head.lane);
      while (!heads.empty() && heads.front().stamp == head.stamp) {
        std::pop_heap(heads.begin(), heads.end(), is_later);
        tied.push_back(heads.back().lane);
        heads.pop_back();
      }
      const std::vector<Lane*> to_push_back = tied;
      applied += apply_ties(tied, head.stamp, sink);
      for (Lane* lane : to_push_back) push(lane);
      continue;
    }
    const std::uint64_t limit = heads.empty() ? watermark : std::min(watermark, heads.front().stamp);
    Lane& lane = *head.lane;
    do {
      apply_front(lane, sink);
      ++applied;
    } while (applied < budget && !lane.empty() && lane.front_stamp() < limit);
    push(&lane);
  }
  return applied;
}

}  // namespace blockyard::record
