#include "pages/purge.hpp"

#include <utility>

namespace blockyard::pages {

bool Purge::purge_run(const PageRun& run) {
  const PageRun whole = pages_.with_decommitted_neighbours(run);
  const bool done = huge_pages_.give_back(whole.first, whole.length);
  if (done) {
    purged_.fetch_add(whole.length, std::memory_order_relaxed);
  }
  pages_.free(whole.first, done ? PageState::free_decommitted : PageState::free_dirty);
  return done;
}

void Purge::follow(std::uint16_t tick, const PageHeap::Lowest& lowest, std::uint64_t reserve, std::uint16_t delay) {
  note(lowest);
  now_.reserve_target = std::max(now_.reserve_target, reserve);
  if (static_cast<std::uint16_t>(tick - since_) >= delay) {
    since_ = tick;
    before_ = std::exchange(now_, {lowest.free, lowest.reserve, reserve});
  }
}

bool Purge::purge_one(std::uint64_t reserve, std::uint64_t most) {
  const std::uint64_t taken = surplus(pages_.totals().used, reserve, most);
  if (taken < PageHeap::least_taken) {
    return false;
  }
  // A chunk out of the longest run, however long that is; else a run that is no longer than what may go.
  const auto limit = [](std::uint64_t length) {
    return length >= pages_per_chunk ? PageHeap::no_limit : static_cast<std::uint32_t>(length);
  };
  PageRun run = pages_.take_free(PageState::free_dirty, limit(taken));
  if (run.length == 0) {
    // Of runs that the reserve is made of only what it never fell short by: else the next round would populate it
    // again.
    const std::uint64_t least = std::min(before_.reserve, now_.reserve);
    const std::uint64_t target = std::max(before_.reserve_target, now_.reserve_target);
    const std::uint64_t beyond =
        std::max<std::uint64_t>(least > target ? least - target : 0, PageHeap::reserve_run - 1);
    run = pages_.take_free(PageState::free_ready, limit(std::min(taken, beyond)));
  }
  if (run.length == 0) {
    return false;
  }
  const bool of_reserve = run.from == PageState::free_ready && run.length >= PageHeap::reserve_run;
  now_.take(run.length, of_reserve);
  before_.take(run.length, of_reserve);
  return purge_run(run);
}

}  // namespace blockyard::pages
