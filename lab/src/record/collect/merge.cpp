// The merge: a heap of lanes ordered by the stamp of their oldest record; runs of one lane are applied together.
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
  lane.look_ahead([&](const std::uint64_t* record) { sink.prefetch(record); });
  const std::uint64_t* record = lane.front();
  sink.apply(lane.thread(), lane.front_stamp(), record);
  lane.pop();
}

bool gives_a_block(const std::uint64_t* record) {
  switch (kind_of(record[0])) {
    case RecordKind::allocate:
    case RecordKind::allocate_zeroed:
    case RecordKind::allocate_aligned:
    case RecordKind::reallocate_end:
      return true;
    default:
      return false;
  }
}

bool takes_block_of(const std::uint64_t* record, const std::uint64_t* giving) {
  const RecordKind kind = kind_of(record[0]);
  return (kind == RecordKind::free || kind == RecordKind::reallocate_begin) &&
         payload_of(record[0]) == payload_of(giving[0]) && engine_of(record[0]) == engine_of(giving[0]);
}

/// How early the lane's oldest record comes among records of one stamp. When several threads got one address in one
/// tick, a thread that freed it within the tick had it before a thread that kept it.
int rank(const Lane& lane, const RecordSink& sink) {
  const std::uint64_t* const oldest = lane.front();
  if (!sink.is_possible(oldest)) return 3;
  if (!gives_a_block(oldest)) return 0;
  return lane.any_behind_front([&](const std::uint64_t* record) { return takes_block_of(record, oldest); }) ? 1 : 2;
}

/// Several lanes hold records of the same stamp: they are put into an order in which each is possible.
std::size_t apply_ties(std::vector<Lane*>& tied, std::uint64_t stamp, RecordSink& sink) {
  std::size_t applied = 0;
  while (!tied.empty()) {
    const auto next = std::min_element(tied.begin(), tied.end(), [&](const Lane* left, const Lane* right) {
      return rank(*left, sink) < rank(*right, sink);
    });
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
