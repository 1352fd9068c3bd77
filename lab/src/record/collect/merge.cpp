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

/// Puts a head in the place of the earliest one: half the steps of taking one out and putting one in.
void replace_earliest(std::vector<Head>& heads, const Head& head) {
  std::size_t at = 0;
  for (std::size_t below = 1; below < heads.size(); below = 2 * at + 1) {
    if (below + 1 < heads.size() && heads[below + 1].stamp < heads[below].stamp) ++below;
    if (heads[below].stamp >= head.stamp) break;
    heads[at] = heads[below];
    at = below;
  }
  heads[at] = head;
}

void take_earliest(std::vector<Head>& heads) {
  const Head last = heads.back();
  heads.pop_back();
  if (!heads.empty()) replace_earliest(heads, last);
}

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
    const Head head = heads.front();
    // The next head is one of the two below the first.
    std::uint64_t next = watermark;
    for (std::size_t below = 1; below < std::min<std::size_t>(heads.size(), 3); ++below)
      next = std::min(next, heads[below].stamp);
    if (next == head.stamp) {
      tied.clear();
      while (!heads.empty() && heads.front().stamp == head.stamp) {
        tied.push_back(heads.front().lane);
        take_earliest(heads);
      }
      const std::vector<Lane*> to_push_back = tied;
      applied += apply_ties(tied, head.stamp, sink);
      for (Lane* lane : to_push_back) push(lane);
      continue;
    }
    Lane& lane = *head.lane;
    do {
      apply_front(lane, sink);
      ++applied;
    } while (applied < budget && !lane.empty() && lane.front_stamp() < next);
    if (lane.empty() || lane.front_stamp() >= watermark) {
      take_earliest(heads);
    } else {
      replace_earliest(heads, {lane.front_stamp(), &lane});
    }
  }
  return applied;
}

}  // namespace blockyard::record
