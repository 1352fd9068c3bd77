#include "heap/page_heap.hpp"

#include <algorithm>
#include <bit>
#include <mutex>
#include <utility>

#include "heap/bound.hpp"
#include "heap/huge_chunks.hpp"
#include "heap/injected_failure.hpp"

namespace blockyard::heap {

// Lengths below 16 pages have a list each; from there on every doubling has 16 lists.
PageHeap::Level PageHeap::level_of(std::uint32_t length) {
  if (length < second_levels) {
    return {0, length};
  }
  const unsigned log2 = static_cast<unsigned>(std::bit_width(length)) - 1;
  return {log2 - 3, (length >> (log2 - 4)) & (second_levels - 1)};
}

void PageHeap::mark(std::uint32_t first, std::uint32_t length, PageState state) {
  PageTag& head = tag(first);
  PageTag& tail = tag(first + length - 1);
  head.length = tail.length = length;
  head.state = tail.state = static_cast<std::uint8_t>(state);
}

void PageHeap::count(std::uint32_t length, PageState state, bool added) {
  std::uint64_t& pages = pages_in_[index_of(state)];
  pages = added ? pages + length : pages - length;
  if (state == PageState::free_ready && length >= reserve_run) {
    // Read without the lock elsewhere.
    __atomic_store_n(&reserve_pages_, added ? reserve_pages_ + length : reserve_pages_ - length, __ATOMIC_RELAXED);
  }
}

void PageHeap::insert(std::uint32_t first, std::uint32_t length, PageState state, std::uint16_t age) {
  mark(first, length, state);
  Lists& lists = lists_[index_of(state)];
  const Level level = level_of(length);
  Ends& ends = lists.ends[level.first][level.second];
  const std::uint32_t head = ends.head;
  PageTag& run = tag(first);
  run.age = age;
  run.previous = 0;
  run.next = head;
  if (head != 0) {
    tag(head).previous = first;
  } else {
    ends.tail = first;
  }
  ends.head = first;
  lists.second_bitmap[level.first] =
      static_cast<std::uint16_t>(lists.second_bitmap[level.first] | (1u << level.second));
  lists.first_bitmap |= 1u << level.first;
  count(length, state, true);
}

void PageHeap::remove(std::uint32_t first) {
  PageTag& run = tag(first);
  const unsigned state = index_of(static_cast<PageState>(run.state));
  Lists& lists = lists_[state];
  const Level level = level_of(run.length);
  Ends& ends = lists.ends[level.first][level.second];
  if (run.next != 0) {
    tag(run.next).previous = run.previous;
  } else {
    ends.tail = run.previous;
  }
  if (run.previous != 0) {
    tag(run.previous).next = run.next;
  } else {
    ends.head = run.next;
    if (run.next == 0) {
      lists.second_bitmap[level.first] =
          static_cast<std::uint16_t>(lists.second_bitmap[level.first] & ~(1u << level.second));
      if (lists.second_bitmap[level.first] == 0) {
        lists.first_bitmap &= ~(1u << level.first);
      }
    }
  }
  count(run.length, static_cast<PageState>(run.state), false);
}

void PageHeap::enter_work(std::uint32_t first) {
  PageTag& run = tag(first);
  pages_in_work_ += run.length;
  run.previous = 0;
  run.next = first_in_work_;
  if (run.next != 0) {
    tag(run.next).previous = first;
  }
  first_in_work_ = first;
}

void PageHeap::leave_work(std::uint32_t first) {
  const PageTag& run = tag(first);
  pages_in_work_ -= run.length;
  if (run.next != 0) {
    tag(run.next).previous = run.previous;
  }
  (run.previous != 0 ? tag(run.previous).next : first_in_work_) = run.next;
}

// Frees a run, merged with free neighbours of the same state. Tags inside the merged run are cleared, so that the page
// of an interior pointer never looks like the beginning of a run.
void PageHeap::release(std::uint32_t first, std::uint32_t length, PageState state, std::uint16_t age) {
  const auto wanted = static_cast<std::uint8_t>(state);
  if (first > 0 && tag(first - 1).state == wanted) {
    const std::uint32_t before = tag(first - 1).length;
    remove(first - before);
    tag(first - 1).state = static_cast<std::uint8_t>(PageState::inner);
    tag(first).state = static_cast<std::uint8_t>(PageState::inner);
    first -= before;
    length += before;
  }
  const std::uint32_t behind = first + length;
  if (behind < top_ && tag(behind).state == wanted) {
    const std::uint32_t after = tag(behind).length;
    remove(behind);
    tag(behind - 1).state = static_cast<std::uint8_t>(PageState::inner);
    tag(behind).state = static_cast<std::uint8_t>(PageState::inner);
    length += after;
  }
  insert(first, length, state, age);
}

// The first run of the first list whose every member has at least `length` pages; 0 when there is none.
std::uint32_t PageHeap::find(PageState state, std::uint32_t length) {
  // Round up to a list's least length, so that whatever stands first in it fits.
  if (length >= second_levels) {
    const unsigned log2 = static_cast<unsigned>(std::bit_width(length)) - 1;
    const std::uint32_t step = (std::uint32_t{1} << (log2 - 4)) - 1;
    length += step;
  }
  const Lists& lists = lists_[index_of(state)];
  const Level level = level_of(length);
  if (level.first >= first_levels) {
    return 0;
  }
  const unsigned second = lists.second_bitmap[level.first] & (~0u << level.second);
  if (second != 0) {
    return lists.ends[level.first][static_cast<unsigned>(std::countr_zero(second))].head;
  }
  const std::uint32_t first = level.first + 1 >= 32 ? 0 : lists.first_bitmap & (~0u << (level.first + 1));
  if (first == 0) {
    return 0;
  }
  const auto row = static_cast<unsigned>(std::countr_zero(first));
  return lists.ends[row][static_cast<unsigned>(std::countr_zero(lists.second_bitmap[row]))].head;
}

// Makes raw pages out of address space never used before, whole chunks at a time.
bool PageHeap::extend(std::uint32_t length) {
  const std::uint64_t limit = region.bytes >> page_shift;
  if (top_ == 0) {
    if (limit == 0) {
      return false;
    }
    // Page 0 is never handed out: index 0 means "none" everywhere.
    mark(0, 1, PageState::used_slab);
    top_ = 1;
  }
  const std::uint64_t wanted = std::uint64_t{top_} + length;
  const std::uint64_t end =
      std::min<std::uint64_t>((wanted + pages_per_chunk - 1) / pages_per_chunk * pages_per_chunk, limit);
  if (end < wanted) {
    return false;
  }
  const std::uint32_t first = top_;
  top_ = static_cast<std::uint32_t>(end);
  release(first, static_cast<std::uint32_t>(end) - first, PageState::free_raw, 0);
  return true;
}

void PageHeap::note_lowest() {
  lowest_.reserve = std::min(lowest_.reserve, reserve_pages_);
  lowest_.ready = std::min(lowest_.ready, pages_in_[index_of(PageState::free_ready)]);
}

// Cuts the pages from `first` to `end` out of the free run at `found` and gives its ends back.
PageRun PageHeap::carve_at(std::uint32_t found, std::uint32_t first, std::uint32_t end, PageState use) {
  PageTag& run = tag(found);
  const auto state = static_cast<PageState>(run.state);
  const std::uint16_t age = run.age;
  const std::uint32_t whole = run.length;
  remove(found);
  tag(found).state = static_cast<std::uint8_t>(PageState::inner);
  tag(found + whole - 1).state = static_cast<std::uint8_t>(PageState::inner);
  if (first != found) {
    insert(found, first - found, state, age);
  }
  if (end != found + whole) {
    insert(end, found + whole - end, state, age);
  }
  mark(first, end - first, use);
  note_lowest();
  if (use == PageState::in_work) {
    enter_work(first);
  }
  return {first, end - first, state};
}

// Cuts an aligned run out of a free one.
PageRun PageHeap::carve(std::uint32_t found, std::uint32_t length, std::uint32_t alignment, PageState use) {
  const std::uint32_t first = (found + alignment - 1) & ~(alignment - 1);
  return carve_at(found, first, first + length, use);
}

// Ready pages of chunks that are huge pages, or of such as are not, if there are any of the kind; else length 0. Whoever
// touches all of a long block waits for the translation of each small page, so what huge pages there are serve long
// blocks first, and slabs last. Looks at the newest run of a few lists of long enough runs: at its first page, and at the
// first pages of the chunks in it.
PageRun PageHeap::carve_from_chunk(bool huge, std::uint32_t length, std::uint32_t alignment, PageState use) {
  constexpr auto chunk = static_cast<std::uint32_t>(pages_per_chunk);
  Bound<Loop::places_for_kind_of_page> looks(most_lists_for_chunk * most_places_for_chunk);
  std::uint32_t searched = length;
  for (std::uint32_t looked = 0; looked < most_lists_for_chunk; ++looked) {
    const std::uint32_t found = find(PageState::free_ready, searched);
    if (found == 0) {
      break;
    }
    const std::uint32_t end = found + tag(found).length;
    std::uint32_t first = (found + alignment - 1) & ~(alignment - 1);
    for (std::uint32_t place = 0; place < most_places_for_chunk && first + length <= end; ++place) {
      looks.turn();
      if (may_be_huge(first, length) == huge) {
        return carve_at(found, first, first + length, use);
      }
      first = ((first / chunk + 1) * chunk + alignment - 1) & ~(alignment - 1);
    }
    searched = end - found + 1;
  }
  return {};
}

PageRun PageHeap::allocate(std::uint32_t length, std::uint32_t alignment, Prefer prefer, PageState use) {
  static constexpr std::array<std::array<PageState, 3>, 4> orders{{
      {PageState::free_ready, PageState::free_stale, PageState::free_raw},
      {PageState::free_stale, PageState::free_ready, PageState::free_raw},
      {PageState::free_raw, PageState::free_raw, PageState::free_raw},
      {PageState::free_ready, PageState::free_stale, PageState::free_raw},
  }};
  const std::uint32_t searched = length + alignment - 1;
  if (searched < length || acquisition_fails()) {
    return {};
  }
  const std::lock_guard hold(lock_);
  // What is not to be had after all is counted too: then memory is exhausted.
  if (prefer == Prefer::ready && use == PageState::used_block) {
    __atomic_store_n(&pages_taken_, pages_taken_ + length, __ATOMIC_RELAXED);
    if (length >= reserve_run) {
      __atomic_store_n(&long_blocks_taken_, long_blocks_taken_ + 1, __ATOMIC_RELAXED);
    }
  }
  if ((prefer == Prefer::ready && length >= reserve_run) || prefer == Prefer::small_pages) {
    const PageRun run =
        some_chunks_are_small() ? carve_from_chunk(prefer == Prefer::ready, length, alignment, use) : PageRun{};
    if (run.length != 0) {
      return run;
    }
  }
  for (const PageState state : orders[static_cast<unsigned>(prefer)]) {
    // Where what is just long enough happens to be aligned, as what a slab left is, nothing longer is cut.
    if (alignment > 1) {
      const std::uint32_t found = find(state, length);
      const std::uint32_t first = (found + alignment - 1) & ~(alignment - 1);
      if (found != 0 && first + length <= found + tag(found).length) {
        return carve(found, length, alignment, use);
      }
    }
    if (const std::uint32_t found = find(state, searched); found != 0) {
      return carve(found, length, alignment, use);
    }
  }
  if (!extend(searched + searched / second_levels + 1)) {
    return {};
  }
  const std::uint32_t found = find(PageState::free_raw, searched);
  return found == 0 ? PageRun{} : carve(found, length, alignment, use);
}

void PageHeap::free(std::uint32_t first, PageState state, std::uint16_t age) {
  const std::lock_guard hold(lock_);
  const std::uint32_t length = tag(first).length;
  if (static_cast<PageState>(tag(first).state) == PageState::in_work) {
    leave_work(first);
  }
  release(first, length, state, age);
}

void PageHeap::abandon_work(std::uint16_t age) {
  const std::lock_guard hold(lock_);
  Bound<Loop::runs_in_work> runs([&] { return pages_in_work_; });  // each has one page at least
  while (first_in_work_ != 0) {
    runs.turn();
    const std::uint32_t first = first_in_work_;
    leave_work(first);
    release(first, tag(first).length, PageState::free_stale, age);
  }
}

void PageHeap::shrink(std::uint32_t first, std::uint32_t length, PageState state, std::uint16_t age) {
  const std::lock_guard hold(lock_);
  const std::uint32_t whole = tag(first).length;
  if (length >= whole) {
    return;
  }
  const auto use = static_cast<PageState>(tag(first).state);
  tag(first + whole - 1).state = static_cast<std::uint8_t>(PageState::inner);
  mark(first, length, use);
  release(first + length, whole - length, state, age);
}

bool PageHeap::grow(std::uint32_t first, std::uint32_t length) {
  const std::lock_guard hold(lock_);
  const std::uint32_t whole = tag(first).length;
  const std::uint32_t behind = first + whole;
  if (length <= whole) {
    return true;
  }
  if (behind >= top_ || static_cast<PageState>(tag(behind).state) != PageState::free_ready) {
    return false;
  }
  const std::uint32_t room = tag(behind).length;
  const std::uint32_t more = length - whole;
  if (room < more) {
    return false;
  }
  const std::uint16_t age = tag(behind).age;
  const auto use = static_cast<PageState>(tag(first).state);
  remove(behind);
  tag(behind - 1).state = static_cast<std::uint8_t>(PageState::inner);
  tag(behind).state = static_cast<std::uint8_t>(PageState::inner);
  tag(behind + room - 1).state = static_cast<std::uint8_t>(PageState::inner);
  if (room != more) {
    insert(behind + more, room - more, PageState::free_ready, age);
  }
  mark(first, length, use);
  note_lowest();
  return true;
}

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

PageRun PageHeap::take_raw(std::uint16_t epoch, bool* done) {
  const std::lock_guard hold(lock_);
  *done = false;
  Lists& lists = lists_[index_of(PageState::free_raw)];
  const Level shortest = level_of(least_swept);
  Bound<Loop::lists_of_raw_runs> looks(most_looked_at);
  for (std::uint32_t looked = 0; looked < most_looked_at; ++looked) {
    looks.turn();
    const std::uint32_t place = list_below(lists, lists.purged_from);
    if (place < shortest.first * second_levels + shortest.second) {
      lists.purged_from = all_lists;
      *done = true;
      return {};
    }
    // What has been swept comes back to the front of its list: all of it has been when the last one was.
    const std::uint32_t found = lists.ends[place / second_levels][place % second_levels].tail;
    if (tag(found).age != epoch) {
      lists.purged_from = place + 1;  // there may be more of them
      tag(found).age = epoch;         // which what stays of it keeps
      return carve(found, std::min(tag(found).length, most_swept), 1, PageState::in_work);
    }
    lists.purged_from = place;
  }
  return {};
}

PageRun PageHeap::take_raw_behind(const PageRun& part) {
  const std::lock_guard hold(lock_);
  const std::uint32_t behind = part.first + part.length;
  if (behind >= top_ || static_cast<PageState>(tag(behind).state) != PageState::free_raw) {
    return {};
  }
  return carve(behind, std::min(tag(behind).length, most_swept), 1, PageState::in_work);
}

PageHeap::Lowest PageHeap::take_lowest() {
  const std::lock_guard hold(lock_);
  return std::exchange(lowest_, Lowest{reserve_pages_, pages_in_[index_of(PageState::free_ready)]});
}

PageHeap::Totals PageHeap::totals() {
  const std::lock_guard hold(lock_);
  Totals totals{pages_in_[0], pages_in_[1], pages_in_[2], 0, pages_in_work_, top_};
  totals.used = totals.top - totals.ready - totals.stale - totals.raw - totals.in_work;
  return totals;
}

const char* PageHeap::check() {
  const std::lock_guard hold(lock_);
  std::array<std::uint64_t, 3> counted{};
  std::array<std::uint64_t, 3> runs{};
  std::uint64_t reserve = 0;
  std::uint64_t in_work = 0;
  PageState before = PageState::inner;
  for (std::uint32_t page = 0; page < top_;) {
    const PageTag& head = tag(page);
    const auto state = static_cast<PageState>(head.state);
    if (state == PageState::inner || head.length == 0 || head.length > top_ - page) {
      return "a run of pages has no valid tag at its first page";
    }
    const PageTag& tail = tag(page + head.length - 1);
    if (tail.length != head.length || tail.state != head.state) {
      return "the tags at the two ends of a run of pages differ";
    }
    for (std::uint32_t inner = page + 1; inner + 1 < page + head.length; ++inner) {
      if (static_cast<PageState>(tag(inner).state) != PageState::inner) {
        return "a page inside a run is marked as the end of one";
      }
    }
    if (is_free(state)) {
      if (state == before) {
        return "two free runs of one state touch without being merged";
      }
      counted[index_of(state)] += head.length;
      ++runs[index_of(state)];
      reserve += state == PageState::free_ready && head.length >= reserve_run ? head.length : 0;
    }
    in_work += state == PageState::in_work ? head.length : 0;
    before = state;
    page += head.length;
  }
  std::uint64_t listed_in_work = 0;
  for (std::uint32_t run = first_in_work_; run != 0; run = tag(run).next) {
    if (static_cast<PageState>(tag(run).state) != PageState::in_work) {
      return "a run stands among those in work that is not";
    }
    listed_in_work += tag(run).length;
  }
  if (in_work != pages_in_work_ || in_work != listed_in_work) {
    return "the count of pages in work differs from the runs";
  }
  if (reserve != reserve_pages_) {
    return "the count of reserve pages differs from the runs";
  }
  for (unsigned state = 0; state < 3; ++state) {
    if (counted[state] != pages_in_[state]) {
      return "the count of free pages differs from the runs";
    }
    std::uint64_t listed = 0;
    for (unsigned row = 0; row < first_levels; ++row) {
      const Lists& lists = lists_[state];
      if (((lists.first_bitmap >> row) & 1u) != (lists.second_bitmap[row] != 0 ? 1u : 0u)) {
        return "the first-level bitmap disagrees with the second";
      }
      for (unsigned column = 0; column < second_levels; ++column) {
        const std::uint32_t head = lists.ends[row][column].head;
        if (((unsigned{lists.second_bitmap[row]} >> column) & 1u) != (head != 0 ? 1u : 0u)) {
          return "the second-level bitmap disagrees with its list";
        }
        std::uint32_t last = 0;
        for (std::uint32_t run = head; run != 0; last = run, run = tag(run).next) {
          const Level level = level_of(tag(run).length);
          if (level.first != row || level.second != column ||
              index_of(static_cast<PageState>(tag(run).state)) != state) {
            return "a free run stands in the wrong list";
          }
          ++listed;
        }
        if (head != 0 && last != lists.ends[row][column].tail) {
          return "a list of free runs does not end where it says";
        }
      }
    }
    if (listed != runs[state]) {
      return "a free run stands in no list";
    }
  }
  return nullptr;
}

}  // namespace blockyard::heap
