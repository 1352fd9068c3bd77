// What the page heap gives the janitor to work on: old free runs to be given back.
#include <algorithm>
#include <bit>
#include <mutex>

#include "heap/bound.hpp"
#include "heap/page_heap.hpp"

namespace blockyard::heap {

// The place of the next list with runs, of shorter runs than that of `place`; 0 where there is none.
std::uint32_t PageHeap::list_below(const Lists& lists, std::uint32_t place) {
  const unsigned row = place / second_levels;
  const unsigned column = place % second_levels;
  if (column != 0) {
    const unsigned shorter = lists.second_bitmap[row] & ((1u << column) - 1);
    if (shorter != 0) {
      return row * second_levels + static_cast<unsigned>(std::bit_width(shorter)) - 1;
    }
  }
  const unsigned rows = lists.first_bitmap & ((1u << row) - 1);
  if (rows == 0) {
    return 0;
  }
  const unsigned below = static_cast<unsigned>(std::bit_width(rows)) - 1;
  return below * second_levels + static_cast<unsigned>(std::bit_width(unsigned{lists.second_bitmap[below]})) - 1;
}

PageRun PageHeap::take_free(PageState state, std::uint32_t longest) {
  const std::lock_guard hold(lock_);
  const Lists& lists = lists_[index_of(state)];
  std::uint32_t place = all_lists;
  if (longest != no_limit) {
    const Level level = level_of(longest + 1);
    place = level.first * second_levels + level.second;
  }
  Bound<Loop::lists_for_purge> looks(least_taken);  // each length below it has a list
  for (place = list_below(lists, place); place != 0; place = list_below(lists, place)) {
    looks.turn();
    const std::uint32_t found = lists.ends[place / second_levels][place % second_levels].tail;
    const std::uint32_t length = tag(found).length;
    if (length >= least_taken) {
      constexpr auto chunk = static_cast<std::uint32_t>(pages_per_chunk);
      const std::uint32_t first = (found + chunk - 1) & ~(chunk - 1);
      return first + chunk <= found + length ? carve(found, chunk, chunk, PageState::in_work)  // so that none is split
                                             : carve(found, length, 1, PageState::in_work);
    }
    if (is_beside_raw(found, length)) {
      return carve(found, length, 1, PageState::in_work);
    }
  }
  return {};
}

// Raw pages may be resident all the same: where huge pages are to be had, the first write to a chunk without any page
// brings all of it in.
PageRun PageHeap::with_raw_neighbours(const PageRun& run) {
  const std::lock_guard hold(lock_);
  constexpr auto chunk = static_cast<std::uint32_t>(pages_per_chunk);
  constexpr auto raw = static_cast<std::uint8_t>(PageState::free_raw);
  std::uint32_t first = run.first;
  std::uint32_t end = run.first + run.length;
  leave_work(run.first);
  if (tag(first - 1).state == raw) {
    first = std::max(first - tag(first - 1).length, first & ~(chunk - 1));
    if (first != run.first) {
      carve_at(run.first - tag(run.first - 1).length, first, run.first, PageState::in_work);
      leave_work(first);
    }
  }
  if (end < top_ && tag(end).state == raw) {
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
      tag(edge).state = static_cast<std::uint8_t>(PageState::inner);
    }
  }
  mark(first, end - first, PageState::in_work);
  enter_work(first);
  return {first, end - first, run.from};
}

}  // namespace blockyard::heap
