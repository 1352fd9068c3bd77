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

PageRun PageHeap::take_old(Purge& purge) {
  const std::lock_guard hold(lock_);
  Lists& lists = lists_[index_of(purge.state)];
  if (purge.longest != ~std::uint32_t{0}) {
    const Level longest = level_of(purge.longest);
    lists.purged_from = std::min(lists.purged_from, longest.first * second_levels + longest.second);
  }
  Bound<Loop::lists_for_purge> looks(most_looked_at);
  for (std::uint32_t looked = 0; looked < most_looked_at; ++looked) {
    looks.turn();
    const std::uint32_t place = list_below(lists, lists.purged_from);
    if (place < least_taken) {
      lists.purged_from = all_lists;
      return purge.lone_age == 0 ? PageRun{} : take_lone(purge);
    }
    lists.purged_from = place;
    const unsigned row = place / second_levels;
    const unsigned column = place % second_levels;
    // Lists are last in, first out: the oldest stands last, but for what is left of a run that was cut.
    for (const std::uint32_t found : {lists.ends[row][column].tail, lists.ends[row][column].head}) {
      if (static_cast<std::uint16_t>(purge.now - tag(found).age) < purge.minimum_age) {
        purge.more_to_come = true;
        continue;
      }
      lists.purged_from = place + 1;  // there may be more of them
      constexpr auto chunk = static_cast<std::uint32_t>(pages_per_chunk);
      const std::uint32_t length = tag(found).length;
      const std::uint32_t first = (found + chunk - 1) & ~(chunk - 1);
      if (first + chunk <= found + length) {
        purge.taken = chunk;
        return carve(found, chunk, chunk, PageState::in_work);  // a whole huge page, so that none is split
      }
      purge.taken = length;
      const PageRun run = carve(found, length, 1, PageState::in_work);
      return with_raw_neighbours(run);
    }
  }
  purge.more_to_come = true;
  return purge.lone_age == 0 ? PageRun{} : take_lone(purge);
}

// A run too short to be purged for its own sake that lies beside raw pages of its chunk: what is left of a chunk that has
// gone back, and keeps it from being whole again. Looks at the oldest of the short lists; the others that it finds there
// are holes among what is in use, which serve what fits them: they go to the front, so that the next one has its turn.
PageRun PageHeap::take_lone(Purge& purge) {
  constexpr auto chunk = static_cast<std::uint32_t>(pages_per_chunk);
  constexpr auto raw = static_cast<std::uint8_t>(PageState::free_raw);
  Lists& lists = lists_[index_of(purge.state)];
  Bound<Loop::short_runs_for_purge> looks(most_short_looked_at);
  for (std::uint32_t looked = 0; looked < most_short_looked_at; ++looked) {
    looks.turn();
    const std::uint32_t place = list_below(lists, lists.lone_from);
    if (place == 0) {
      lists.lone_from = least_taken;
      return {};
    }
    const std::uint32_t found = lists.ends[place / second_levels][place % second_levels].tail;
    const PageTag run = tag(found);
    if (static_cast<std::uint16_t>(purge.now - run.age) < purge.lone_age) {
      lists.lone_from = place;
      continue;
    }
    lists.lone_from = place + 1;  // there may be more of them
    const std::uint32_t end = found + run.length;
    if ((found % chunk != 0 && tag(found - 1).state == raw) ||
        (end % chunk != 0 && end < top_ && tag(end).state == raw)) {
      purge.taken = run.length;
      return with_raw_neighbours(carve(found, run.length, 1, PageState::in_work));
    }
    remove(found);
    insert(found, run.length, purge.state, purge.now);
  }
  purge.more_to_come = true;
  return {};
}

// Adds the raw pages beside a run in work, as far as its chunks go. They may be resident all the same: where huge pages
// are to be had, the first write to a chunk without any page brings all of it in.
PageRun PageHeap::with_raw_neighbours(const PageRun& run) {
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
