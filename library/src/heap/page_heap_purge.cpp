// What the page heap gives the janitor to work on: old free runs to be given back.
#include <algorithm>
#include <mutex>

#include "heap/bound.hpp"
#include "heap/page_heap.hpp"

namespace blockyard::heap {

PageRun PageHeap::take_free(PageState state, std::uint32_t longest) {
  const std::lock_guard hold(lock_);
  const FreeRuns& runs = free_[index_of(state)];
  std::uint32_t place = longest == no_limit ? FreeRuns::end_of_lists : FreeRuns::place_of(longest + 1);
  Bound<Loop::lists_for_purge> lists(least_taken);  // each length below it has a list
  for (place = runs.next_below(place); place != 0; place = runs.next_below(place)) {
    lists.turn();
    const std::uint32_t found = runs.last_of(place);
    const std::uint32_t length = tag(found).length;
    if (length >= least_taken) {
      constexpr auto chunk = static_cast<std::uint32_t>(pages_per_chunk);
      const std::uint32_t first = (found + chunk - 1) & ~(chunk - 1);
      return first + chunk <= found + length ? carve_at(found, first, first + chunk, PageState::in_work)
                                             : carve_at(found, found, found + length, PageState::in_work);
    }
    if (is_beside_decommitted(found, length)) {
      return carve_at(found, found, found + length, PageState::in_work);
    }
  }
  return {};
}

// Decommitted pages may be resident all the same: where huge pages are to be had, the first write to a chunk without
// any page brings all of it in.
PageRun PageHeap::with_decommitted_neighbours(const PageRun& run) {
  const std::lock_guard hold(lock_);
  constexpr auto chunk = static_cast<std::uint32_t>(pages_per_chunk);
  constexpr auto decommitted = static_cast<std::uint8_t>(PageState::free_decommitted);
  std::uint32_t first = run.first;
  std::uint32_t end = run.first + run.length;
  leave_work(run.first);
  if (tag(first - 1).state == decommitted) {
    first = std::max(first - tag(first - 1).length, first & ~(chunk - 1));
    if (first != run.first) {
      carve_at(run.first - tag(run.first - 1).length, first, run.first, PageState::in_work);
      leave_work(first);
    }
  }
  if (end < top_ && tag(end).state == decommitted) {
    const std::uint32_t behind = end;
    end = std::min(end + tag(end).length, (end + chunk - 1) & ~(chunk - 1));
    if (end != behind) {
      carve_at(behind, behind, end, PageState::in_work);
      leave_work(behind);
    }
  }
  // One run of what were up to three: tags inside it are cleared.
  for (const std::uint32_t edge : {run.first - 1, run.first, run.first + run.length - 1, run.first + run.length}) {
    if (edge >= first && edge < end) {
      mark_inner(edge);
    }
  }
  mark(first, end - first, PageState::in_work);
  enter_work(first);
  return {first, end - first, run.from};
}

}  // namespace blockyard::heap
