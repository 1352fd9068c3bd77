// Which slot a block gets. Slots are recycled, so that the run's table is as long as the most live blocks, and in such
// a way that threads seldom wait for each other.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <vector>

#include "replay/plan/plan_format.hpp"

namespace blockyard::replay {

/// A slot belongs to the thread that first took it and goes back to that thread, whichever thread frees its block. A
/// slot that its own thread freed is reused at once, last in first out, while it is in the cache. A slot that another
/// thread freed rests until `rest_events` more events have passed, because its next user must wait for that free; by
/// then the free is long over. The table's length is at most the sum of each thread's most live blocks, `rest_events`,
/// and 64 per thread. All that holds for each route by itself: a slot's number says its route.
class Slots {
 public:
  /// Enough that no wait for a resting slot was seen at 1x pace on any journal tried (a busy frame has some 70,000
  /// events).
  static constexpr std::uint64_t rest_events = 4096;

  /// A slot for a block that `thread` allocates at event `now`, on a route or (`none`) without one. Amortised O(1).
  std::uint32_t take(std::uint32_t thread, std::uint64_t now, std::uint32_t route = none) {
    PerThread& mine = of(thread, route);
    if (!mine.own.empty()) {
      const std::uint32_t slot = mine.own.back();
      mine.own.pop_back();
      return slot;
    }
    if (!mine.resting.empty() && mine.resting.front().since + rest_events <= now) {
      const std::uint32_t slot = mine.resting.front().slot;
      mine.resting.pop_front();
      return slot;
    }
    if (mine.fresh == mine.fresh_end) {  // a cache line of the table belongs to one thread only
      mine.fresh = size_;
      mine.fresh_end = size_ += slot_group;
      threads_of_groups_.push_back(thread);
      routes_of_groups_.push_back(route);
    }
    return mine.fresh++;
  }

  /// `thread` freed the block in `slot` at event `now`. O(1).
  void give_back(std::uint32_t slot, std::uint32_t thread, std::uint64_t now) {
    const std::uint32_t owner = threads_of_groups_[slot / slot_group];
    PerThread& theirs = of(owner, route_of(slot));
    if (owner == thread) {
      theirs.own.push_back(slot);
    } else {
      theirs.resting.push_back({slot, now});
    }
  }

  /// Slots handed out so far, live or not.
  [[nodiscard]] std::uint32_t size() const { return size_; }

  /// `none` for a slot without a route.
  [[nodiscard]] std::uint32_t route_of(std::uint32_t slot) const { return routes_of_groups_[slot / slot_group]; }
  [[nodiscard]] const std::vector<std::uint32_t>& routes_of_groups() const { return routes_of_groups_; }

 private:
  struct Resting {
    std::uint32_t slot;
    std::uint64_t since;
  };
  struct PerThread {
    std::vector<std::uint32_t> own;
    std::deque<Resting> resting;
    std::uint32_t fresh = 0;
    std::uint32_t fresh_end = 0;
  };

  PerThread& of(std::uint32_t thread, std::uint32_t route) {
    const std::uint32_t index = route + 1;  // wraps to 0 for `none`
    static_assert(none + 1u == 0);
    if (index >= routes_.size()) routes_.resize(index + 1);
    std::vector<PerThread>& threads = routes_[index];
    if (thread >= threads.size()) threads.resize(thread + 1);
    return threads[thread];
  }

  std::vector<std::vector<PerThread>> routes_;  ///< first those without a route; by thread
  std::vector<std::uint32_t> threads_of_groups_;
  std::vector<std::uint32_t> routes_of_groups_;
  std::uint32_t size_ = 0;
};

}  // namespace blockyard::replay
