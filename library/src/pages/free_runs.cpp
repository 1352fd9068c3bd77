#include "pages/free_runs.hpp"

#include <algorithm>
#include <bit>

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

const char* FreeRuns::check(std::uint8_t state, std::uint64_t runs) const {
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

}  // namespace blockyard::pages
