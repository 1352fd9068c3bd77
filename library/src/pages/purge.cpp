#include "pages/purge.hpp"

#include <utility>

#include "heap/settings.hpp"
#include "pages/huge_pages.hpp"

namespace blockyard::heap {

bool purge_run(PageHeap& pages, const PageRun& run, Atomic<std::uint64_t>& purged) {
  const PageRun whole = pages.with_decommitted_neighbours(run);
  const bool done = give_back(whole.first, whole.length);
  if (done) {
    purged.fetch_add(whole.length, std::memory_order_relaxed);
  }
  pages.free(whole.first, done ? PageState::free_decommitted : PageState::free_dirty);
  return done;
}

void Purging::follow(std::uint16_t tick, const PageHeap::Lowest& lowest, std::uint64_t reserve) {
  note(lowest);
  now_.reserve_wanted = std::max(now_.reserve_wanted, reserve);
  if (static_cast<std::uint16_t>(tick - since_) >= settings.purge_ms / 16) {
    since_ = tick;
    before_ = std::exchange(now_, {lowest.free, lowest.reserve, reserve});
  }
}

bool Purging::purge_one(PageHeap& pages, std::uint64_t reserve, std::uint64_t most, Atomic<std::uint64_t>& purged) {
  const std::uint64_t taken = surplus(pages.totals().used, reserve, most);
  if (taken < PageHeap::least_taken) {
    return false;
  }
  // A chunk out of the longest run, however long that is; else a run that is no longer than what may go.
  const auto limit = [](std::uint64_t length) {
    return length >= pages_per_chunk ? PageHeap::no_limit : static_cast<std::uint32_t>(length);
  };
  PageRun run = pages.take_free(PageState::free_dirty, limit(taken));
  if (run.length == 0) {
    // Of runs that the reserve is made of only what it never fell short by: else the next round would populate it
    // again.
    const std::uint64_t least = std::min(before_.reserve, now_.reserve);
    const std::uint64_t wanted = std::max(before_.reserve_wanted, now_.reserve_wanted);
    const std::uint64_t beyond =
        std::max<std::uint64_t>(least > wanted ? least - wanted : 0, PageHeap::reserve_run - 1);
    run = pages.take_free(PageState::free_ready, limit(std::min(taken, beyond)));
  }
  if (run.length == 0) {
    return false;
  }
  const bool of_reserve = run.from == PageState::free_ready && run.length >= PageHeap::reserve_run;
  now_.take(run.length, of_reserve);
  before_.take(run.length, of_reserve);
  return purge_run(pages, run, purged);
}

}  // namespace blockyard::heap
