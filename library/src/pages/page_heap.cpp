#include "pages/page_heap.hpp"

#include <bit>
#include <mutex>

#include "base/bits.hpp"
#include "base/bound.hpp"
#include "base/index_list.hpp"
#include "pages/injected_failure.hpp"

namespace blockyard::pages {

std::uint32_t FreeRuns::list_of(std::uint32_t length) {
  if (length < row_lists) {
    return length;
  }
  const unsigned log2 = static_cast<unsigned>(std::bit_width(length)) - 1;
  return std::min((log2 - 3) * row_lists + ((length >> (log2 - 4)) & (row_lists - 1)), end_of_lists);
}

void FreeRuns::insert(std::uint32_t first, bool at_tail) {
  PageTag& run = tag(first);
  const std::uint32_t list = list_of(run.length);
  const unsigned row = list / row_lists;
  Ends& ends = ends_[row][list % row_lists];
  run.previous = run.next = 0;
  if (ends.head == 0) {
    ends = {first, first};
  } else if (at_tail) {
    run.previous = ends.tail;
    tag(ends.tail).next = first;
    ends.tail = first;
  } else {
    run.next = ends.head;
    tag(ends.head).previous = first;
    ends.head = first;
  }
  bitmaps_[row] = static_cast<std::uint16_t>(bitmaps_[row] | (1u << list % row_lists));
  row_bitmap_ |= 1u << row;
  pages_ += run.length;
}

void FreeRuns::remove(std::uint32_t first) {
  const PageTag& run = tag(first);
  const std::uint32_t list = list_of(run.length);
  const unsigned row = list / row_lists;
  Ends& ends = ends_[row][list % row_lists];
  (run.next != 0 ? tag(run.next).previous : ends.tail) = run.previous;
  (run.previous != 0 ? tag(run.previous).next : ends.head) = run.next;
  if (ends.head == 0) {
    bitmaps_[row] = static_cast<std::uint16_t>(bitmaps_[row] & ~(1u << list % row_lists));
    if (bitmaps_[row] == 0) {
      row_bitmap_ &= ~(1u << row);
    }
  }
  pages_ -= run.length;
}

std::uint32_t FreeRuns::find(std::uint32_t length) const {
  // Round up to a list's least length, so that whatever stands first in it fits.
  if (length >= row_lists) {
    const unsigned log2 = static_cast<unsigned>(std::bit_width(length)) - 1;
    length += (std::uint32_t{1} << (log2 - 4)) - 1;
  }
  const std::uint32_t list = list_of(length);
  if (list >= end_of_lists) {
    return 0;
  }
  unsigned row = list / row_lists;
  unsigned lists = bitmaps_[row] & (~0u << list % row_lists);
  if (lists == 0) {
    const std::uint32_t longer = row_bitmap_ & (~0u << (row + 1));  // rows are fewer than its bits
    if (longer == 0) {
      return 0;
    }
    row = static_cast<unsigned>(std::countr_zero(longer));
    lists = bitmaps_[row];
  }
  return ends_[row][static_cast<unsigned>(std::countr_zero(lists))].head;
}

std::uint32_t FreeRuns::fit_in(std::uint32_t list, std::uint32_t length, std::uint32_t alignment,
                               std::uint32_t most_looked_at) const {
  std::uint32_t run = ends_[list / row_lists][list % row_lists].head;
  for (; run != 0 && most_looked_at != 0; run = tag(run).next, --most_looked_at) {
    const std::uint32_t first = (run + alignment - 1) & ~(alignment - 1);
    if (first + length <= run + tag(run).length) {
      return run;
    }
  }
  return 0;
}

std::uint32_t FreeRuns::find_near(std::uint32_t length, std::uint32_t alignment) const {
  constexpr std::uint32_t most_looked_at = 8;
  const std::uint32_t list = list_of(length);
  return list < end_of_lists ? fit_in(list, length, alignment, most_looked_at) : 0;
}

std::uint32_t FreeRuns::first_fit(std::uint32_t length, std::uint32_t alignment) const {
  for (std::uint32_t list = list_of(length); list < end_of_lists; ++list) {
    if (const std::uint32_t run = fit_in(list, length, alignment, ~std::uint32_t{0}); run != 0) {
      return run;
    }
  }
  return 0;
}

std::uint32_t FreeRuns::next_below(std::uint32_t list) const {
  unsigned row = list / row_lists;
  unsigned lists = row < rows ? bitmaps_[row] & ((1u << list % row_lists) - 1) : 0;
  if (lists == 0) {
    const std::uint32_t shorter = row_bitmap_ & ((1u << row) - 1);
    if (shorter == 0) {
      return 0;
    }
    row = static_cast<unsigned>(std::bit_width(shorter)) - 1;
    lists = bitmaps_[row];
  }
  return row * row_lists + static_cast<unsigned>(std::bit_width(lists)) - 1;
}

const char* FreeRuns::check(PageState state, std::uint64_t runs) const {
  std::uint64_t listed = 0;
  std::uint64_t pages = 0;
  for (std::uint32_t list = 0; list < end_of_lists; ++list) {
    const unsigned row = list / row_lists;
    if ((row_bitmap_ >> row & 1u) != (bitmaps_[row] != 0 ? 1u : 0u)) {
      return "the first-level bitmap disagrees with the second";
    }
    const Ends& ends = ends_[row][list % row_lists];
    if ((unsigned{bitmaps_[row]} >> list % row_lists & 1u) != (ends.head != 0 ? 1u : 0u)) {
      return "the second-level bitmap disagrees with its list";
    }
    std::uint32_t last = 0;
    for (std::uint32_t run = ends.head; run != 0; last = run, run = tag(run).next) {
      if (list_of(tag(run).length) != list || tag(run).state != state) {
        return "a free run stands in the wrong list";
      }
      ++listed;
      pages += tag(run).length;
    }
    if (ends.head != 0 && last != ends.tail) {
      return "a list of free runs does not end where it says";
    }
  }
  if (listed != runs) {
    return "a free run stands in no list";
  }
  return pages == pages_ ? nullptr : "the count of free pages differs from the runs";
}

// What is freed next to a run looks at the run's last page for a free one only. Of others that page is marked as inner:
// a pointer to it must not look like one to the beginning of a block.
void PageHeap::mark(std::uint32_t first, std::uint32_t length, PageState state) {
  PageTag& head = tag(first);
  PageTag& tail = tag(first + length - 1);
  head.length = tail.length = length;
  tail.state = is_free(state) ? state : PageState::inner;
  head.state = state;
}

void PageHeap::count_reserve(std::uint32_t length, PageState state, bool added) {
  if (state == PageState::free_ready && length >= reserve_run) {
    // Read without the lock elsewhere.
    __atomic_store_n(&pages_in_reserve_, added ? pages_in_reserve_ + length : pages_in_reserve_ - length,
                     __ATOMIC_RELAXED);
  }
}

// Where the decommitted pages beside the pages from `first` to `end` begin and end, as far as their chunks go.
std::pair<std::uint32_t, std::uint32_t> PageHeap::with_decommitted(std::uint32_t first, std::uint32_t end) const {
  if (first % pages_per_chunk != 0 && tag(first - 1).state == PageState::free_decommitted) {
    first = std::max(first - tag(first - 1).length, base::align_down(first, pages_per_chunk));
  }
  if (end % pages_per_chunk != 0 && end < top_ && tag(end).state == PageState::free_decommitted) {
    end = std::min(end + tag(end).length, base::align_up(end, pages_per_chunk));
  }
  return {first, end};
}

// Whether the system can give a run back at all, with the decommitted pages beside it, and a short one is worth it.
bool PageHeap::may_be_purged(std::uint32_t first, std::uint32_t length) const {
  const auto [begin, end] = with_decommitted(first, first + length);
  const std::uint32_t whole = system_pages();
  return (length >= least_taken || end - begin != length) && (begin + whole - 1) / whole * whole + whole <= end;
}

// Allocations take from the head of a list, take_free from its tail. Short runs that may be purged stand at the tail,
// the others, which serve what fits them, at the head.
void PageHeap::insert(std::uint32_t first, std::uint32_t length, PageState state) {
  mark(first, length, state);
  free_[index_of(state)].insert(first, length < always_taken() && may_be_purged(first, length));
  count_reserve(length, state, true);
}

void PageHeap::remove(std::uint32_t first) {
  const PageState state = tag(first).state;
  free_[index_of(state)].remove(first);
  count_reserve(tag(first).length, state, false);
}

void PageHeap::enter_work(std::uint32_t first) {
  pages_in_work_ += tag(first).length;
  base::list_push(first_in_work_, first, tags());
}

void PageHeap::leave_work(std::uint32_t first) {
  pages_in_work_ -= tag(first).length;
  base::list_remove(first_in_work_, first, tags());
}

// Frees a run, merged with free neighbours of the same state. Tags inside the merged run are cleared, so that the page
// of an interior pointer never looks like the beginning of a run.
void PageHeap::release(std::uint32_t first, std::uint32_t length, PageState state) {
  if (first > 0 && tag(first - 1).state == state) {
    const std::uint32_t before = tag(first - 1).length;
    remove(first - before);
    mark_inner(first - 1);
    mark_inner(first);
    first -= before;
    length += before;
  }
  const std::uint32_t behind = first + length;
  if (behind < top_ && tag(behind).state == state) {
    const std::uint32_t after = tag(behind).length;
    remove(behind);
    mark_inner(behind - 1);
    mark_inner(behind);
    length += after;
  }
  insert(first, length, state);
  if (state == PageState::free_decommitted) {
    show_to_purge(first, length);
  }
}

// Short runs beside pages that have just been decommitted go to the tails of their lists.
void PageHeap::show_to_purge(std::uint32_t first, std::uint32_t length) {
  const auto move = [this](std::uint32_t run) {
    const PageState state = tag(run).state;
    const std::uint32_t pages = tag(run).length;
    if (is_free(state) && pages < always_taken()) {
      remove(run);
      insert(run, pages, state);
    }
  };
  move(first - tag(first - 1).length);
  if (first + length < top_) {
    move(first + length);
  }
}

void PageHeap::open(std::uint32_t first, std::uint32_t end) {
  const std::lock_guard hold(lock_);
  bottom_ = first;
  top_ = end;
  insert(first, end - first, PageState::free_decommitted);
}

// Makes decommitted pages out of address space never used before, whole chunks at a time.
bool PageHeap::extend(std::uint32_t length) {
  const std::uint64_t limit = region_.most_bytes >> page_shift;
  if (top_ == 0) {
    if (limit == 0) {
      return false;
    }
    // Page 0 is among those that are not mapped: index 0 means "none" everywhere.
    mark(0, first_page, PageState::used_slab);
    top_ = first_page;
  }
  const std::uint64_t needed = std::uint64_t{top_} + length;
  const std::uint64_t end =
      std::min<std::uint64_t>((needed + pages_per_chunk - 1) / pages_per_chunk * pages_per_chunk, limit);
  if (end < needed || !region_.grow(static_cast<std::size_t>(end) << page_shift)) {
    return false;
  }
  const std::uint32_t first = top_;
  __atomic_store_n(&top_, static_cast<std::uint32_t>(end), __ATOMIC_RELAXED);  // read without the lock elsewhere
  release(first, static_cast<std::uint32_t>(end) - first, PageState::free_decommitted);
  return true;
}

std::uint64_t PageHeap::free_pages() const {
  return free_[index_of(PageState::free_ready)].pages() + free_[index_of(PageState::free_dirty)].pages();
}

void PageHeap::note_lowest() {
  lowest_.reserve = std::min(lowest_.reserve, pages_in_reserve_);
  lowest_.free = std::min(lowest_.free, free_pages());
}

// Cuts the pages from `first` to `end` out of the free runs there, of which the first begins at `run`, and gives the
// ends back.
void PageHeap::cut_out(std::uint32_t run, std::uint32_t first, std::uint32_t end) {
  while (run < end) {
    const PageState state = tag(run).state;
    const std::uint32_t next = run + tag(run).length;
    remove(run);
    mark_inner(run);
    mark_inner(next - 1);
    if (run < first) {
      insert(run, first - run, state);
    }
    if (next > end) {
      insert(end, next - end, state);
    }
    run = next;
  }
}

// Likewise of one run, for that use.
PageRun PageHeap::carve_at(std::uint32_t found, std::uint32_t first, std::uint32_t end, PageState use) {
  const PageState state = tag(found).state;
  cut_out(found, first, end);
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

PageRun PageHeap::allocate(std::uint32_t length, std::uint32_t alignment, Prefer prefer, PageState use) {
  if (length + alignment - 1 < length || acquisition_fails()) {
    return {};
  }
  const std::lock_guard hold(lock_);
  // What cannot be had after all is counted too: then memory is exhausted.
  if (prefer == Prefer::ready && use == PageState::used_block) {
    __atomic_store_n(&pages_taken_, pages_taken_ + length, __ATOMIC_RELAXED);
  }
  return take(length, alignment, prefer, use);
}

PageRun PageHeap::allocate_merged(std::uint32_t length, std::uint32_t alignment, PageState use) {
  if (length + alignment - 1 < length) {
    return {};
  }
  const std::lock_guard hold(lock_);
  forget_states();
  const FreeRuns& runs = free_[index_of(PageState::free_dirty)];
  std::uint32_t found = runs.first_fit(length, alignment);
  if (found == 0) {
    // No more than is short: what is free at the end counts.
    const std::uint32_t needed = length + alignment - 1;
    const bool free_at_end = top_ != 0 && tag(top_ - 1).state == PageState::free_dirty;
    if (!extend(needed - (free_at_end ? std::min(tag(top_ - 1).length, needed) : 0))) {
      return {};
    }
    forget_states();
    found = runs.first_fit(length, alignment);
  }
  return found == 0 ? PageRun{} : carve(found, length, alignment, use);
}

// All free runs become dirty, which may be said of any page: then they merge.
void PageHeap::forget_states() {
  for (const PageState state : {PageState::free_ready, PageState::free_decommitted}) {
    const FreeRuns& runs = free_[index_of(state)];
    for (std::uint32_t list = runs.next_below(FreeRuns::end_of_lists); list != 0;
         list = runs.next_below(FreeRuns::end_of_lists)) {
      const std::uint32_t first = runs.last_of(list);
      remove(first);
      release(first, tag(first).length, PageState::free_dirty);
    }
  }
}

// Free pages of the first state in the order that has them, else new ones.
PageRun PageHeap::take(std::uint32_t length, std::uint32_t alignment, Prefer prefer, PageState use) {
  static constexpr std::array<std::array<PageState, 3>, 4> orders{{
      {PageState::free_ready, PageState::free_dirty, PageState::free_decommitted},
      {PageState::free_dirty, PageState::free_ready, PageState::free_decommitted},
      {PageState::free_dirty, PageState::free_decommitted, PageState::free_decommitted},
      {PageState::free_decommitted, PageState::free_decommitted, PageState::free_decommitted},
  }};
  const std::uint32_t searched = length + alignment - 1;
  for (const PageState state : orders[static_cast<unsigned>(prefer)]) {
    // A large block that was freed is found again by one of its size: find() would look past it.
    if (prefer == Prefer::dirty) {
      if (const std::uint32_t found = free_[index_of(state)].find_near(length, alignment); found != 0) {
        return carve(found, length, alignment, use);
      }
    }
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
    if (prefer == Prefer::dirty && state == PageState::free_dirty && alignment == 1) {
      if (const PageRun run = take_around_dirty(length, use)) {
        return run;
      }
    }
  }
  if (!extend(searched + searched / 16 + 1)) {
    return {};
  }
  const std::uint32_t found = find(PageState::free_decommitted, searched);
  return found == 0 ? PageRun{} : carve(found, length, alignment, use);
}

// What is left of a large block that was freed a while ago, of which parts were given back or populated since, together
// with these parts: else the block that is asked for again would be resident beside what is left. O(1).
PageRun PageHeap::take_around_dirty(std::uint32_t length, PageState use) {
  constexpr int most_runs = 4;  // on either side
  const FreeRuns& dirty = free_[index_of(PageState::free_dirty)];
  const std::uint32_t list = dirty.next_below(FreeRuns::end_of_lists);
  if (list == 0) {
    return {};
  }
  const std::uint32_t run = dirty.last_of(list);
  const auto is_free_at = [this](std::uint32_t page) { return is_free(tag(page).state); };
  std::uint32_t end = run + tag(run).length;
  for (int runs = 0; runs < most_runs && end - run < length && end < top_ && is_free_at(end); ++runs) {
    end += tag(end).length;
  }
  std::uint32_t begin = run;
  for (int runs = 0; runs < most_runs && end - begin < length && is_free_at(begin - 1); ++runs) {
    begin -= tag(begin - 1).length;
  }
  if (end - begin < length) {
    return {};
  }
  const std::uint32_t first = begin == run ? run : end - length;
  cut_out(begin, first, first + length);
  mark(first, length, use);
  note_lowest();
  return {first, length, PageState::free_dirty};
}

void PageHeap::free(std::uint32_t first, PageState state) {
  const std::lock_guard hold(lock_);
  const std::uint32_t length = tag(first).length;
  if (tag(first).state == PageState::in_work) {
    leave_work(first);
  }
  release(first, length, state);
}

void PageHeap::abandon_work() {
  const std::lock_guard hold(lock_);
  base::Bound runs("runs in work given up in a forked child",
                   [&] { return pages_in_work_; });  // each has one page at least
  while (first_in_work_ != 0) {
    runs.turn();
    const std::uint32_t first = first_in_work_;
    leave_work(first);
    release(first, tag(first).length, PageState::free_dirty);
  }
}

void PageHeap::shrink(std::uint32_t first, std::uint32_t length, PageState state) {
  const std::lock_guard hold(lock_);
  const std::uint32_t whole = tag(first).length;
  if (length >= whole) {
    return;
  }
  const PageState use = tag(first).state;
  mark_inner(first + whole - 1);
  mark(first, length, use);
  release(first + length, whole - length, state);
}

// The free runs behind it differ in their states. Where they reach the end of what was ever used, and no other place is
// long enough, new pages follow: a block that would have to move there needs not move at all.
bool PageHeap::grow(std::uint32_t first, std::uint32_t length, bool populated, std::uint32_t most_runs) {
  const std::lock_guard hold(lock_);
  const std::uint32_t whole = tag(first).length;
  if (length <= whole) {
    return true;
  }
  const std::uint32_t behind = first + whole;
  const std::uint32_t end = first + length;
  const auto serves = [&](std::uint32_t run) {
    const PageState state = tag(run).state;
    return populated ? state == PageState::free_ready : is_free(state);
  };
  std::uint32_t reached = behind;
  for (std::uint32_t runs = 0; runs < most_runs && reached < end && reached < top_ && serves(reached); ++runs) {
    reached += tag(reached).length;
  }
  if (reached < end) {
    const bool fits_elsewhere = find(PageState::free_ready, length) != 0 || find(PageState::free_dirty, length) != 0 ||
                                find(PageState::free_decommitted, length) != 0;
    if (populated || reached != top_ || fits_elsewhere || !extend(end - reached)) {
      return false;
    }
  }
  const PageState use = tag(first).state;
  mark_inner(behind - 1);
  cut_out(behind, behind, end);
  mark(first, length, use);
  note_lowest();
  return true;
}

PageHeap::Lowest PageHeap::take_lowest() {
  const std::lock_guard hold(lock_);
  return std::exchange(lowest_, Lowest{pages_in_reserve_, free_pages()});
}

PageHeap::Totals PageHeap::totals() {
  const std::lock_guard hold(lock_);
  Totals totals{free_[0].pages(), free_[1].pages(), free_[2].pages(), 0, pages_in_work_, top_};
  totals.used = totals.top - std::min(totals.top, std::uint64_t{bottom_ == 0 ? first_page : bottom_}) - totals.ready -
                totals.dirty - totals.decommitted - totals.in_work;
  return totals;
}

PageRun PageHeap::take_free(PageState state, std::uint32_t longest) {
  const std::lock_guard hold(lock_);
  const FreeRuns& runs = free_[index_of(state)];
  std::uint32_t list = longest == no_limit ? FreeRuns::end_of_lists : FreeRuns::list_of(longest + 1);
  base::Bound lists("lists searched for what to purge", always_taken());  // each length below it has a list
  for (list = runs.next_below(list); list != 0; list = runs.next_below(list)) {
    lists.turn();
    const std::uint32_t found = runs.last_of(list);
    const std::uint32_t length = tag(found).length;
    if (length >= always_taken() || may_be_purged(found, length)) {
      const std::uint32_t first = base::align_up(found, pages_per_chunk);
      return first + pages_per_chunk <= found + length
                 ? carve_at(found, first, first + pages_per_chunk, PageState::in_work)
                 : carve_at(found, found, found + length, PageState::in_work);
    }
  }
  return {};
}

// Decommitted pages may be resident all the same: where huge pages are to be had, the first write to a chunk without
// any page brings all of it in.
PageRun PageHeap::with_decommitted_neighbours(const PageRun& run) {
  const std::lock_guard hold(lock_);
  const std::uint32_t behind = run.first + run.length;
  const auto [first, end] = with_decommitted(run.first, behind);
  leave_work(run.first);
  if (first != run.first) {
    carve_at(run.first - tag(run.first - 1).length, first, run.first, PageState::in_work);
    leave_work(first);
  }
  if (end != behind) {
    carve_at(behind, behind, end, PageState::in_work);
    leave_work(behind);
  }
  // One run of what were up to three: tags inside it are cleared.
  for (const std::uint32_t edge : {run.first - 1, run.first, behind - 1, behind}) {
    if (edge >= first && edge < end) {
      mark_inner(edge);
    }
  }
  mark(first, end - first, PageState::in_work);
  enter_work(first);
  return {first, end - first, run.from};
}

const char* PageHeap::check() {
  const std::lock_guard hold(lock_);
  std::array<std::uint64_t, 3> runs{};
  std::uint64_t reserve = 0;
  std::uint64_t in_work = 0;
  PageState before = PageState::inner;
  for (std::uint32_t page = bottom_; page < top_;) {
    const PageTag& head = tag(page);
    const PageState state = head.state;
    if (state == PageState::inner || head.length == 0 || head.length > top_ - page) {
      return "a run of pages has no valid tag at its first page";
    }
    const PageTag& tail = tag(page + head.length - 1);
    const PageState expected = is_free(state) || head.length == 1 ? state : PageState::inner;
    if (tail.length != head.length || tail.state != expected) {
      return "the tags at the two ends of a run of pages differ";
    }
    for (std::uint32_t inner = page + 1; inner + 1 < page + head.length; ++inner) {
      if (tag(inner).state != PageState::inner) {
        return "a page inside a run is marked as the end of one";
      }
    }
    if (is_free(state)) {
      if (state == before) {
        return "two free runs of one state touch without being merged";
      }
      ++runs[index_of(state)];
      reserve += state == PageState::free_ready && head.length >= reserve_run ? head.length : 0;
    }
    in_work += state == PageState::in_work ? head.length : 0;
    before = state;
    page += head.length;
  }
  std::uint64_t listed_in_work = 0;
  for (std::uint32_t run = first_in_work_; run != 0; run = tag(run).next) {
    if (tag(run).state != PageState::in_work) {
      return "a run stands among those in work that is not";
    }
    listed_in_work += tag(run).length;
  }
  if (in_work != pages_in_work_ || in_work != listed_in_work) {
    return "the count of pages in work differs from the runs";
  }
  if (reserve != pages_in_reserve_) {
    return "the count of reserve pages differs from the runs";
  }
  for (unsigned index = 0; index < 3; ++index) {
    const auto state = static_cast<PageState>(index + static_cast<unsigned>(PageState::free_ready));
    if (const char* const broken = free_[index].check(state, runs[index]); broken != nullptr) {
      return broken;
    }
  }
  return nullptr;
}

}  // namespace blockyard::pages
