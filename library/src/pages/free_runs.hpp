// Free runs of pages by length, to be found in O(1): the index of a two-level segregated fit (Masmano, Ripoll, Crespo,
// Real, "TLSF: a new dynamic memory allocator for real-time systems", 2004).
//
// Lengths below 16 pages have a list each; from there on every doubling has 16 lists. A run is found in the first list
// whose every member is long enough, so at most 1/16 of a request above 16 pages is searched past.
#pragma once

#include <array>
#include <cstdint>

#include "pages/region.hpp"

namespace blockyard::pages {

/// Runs of one state. Their links stand in the tags of their first pages. No lock: the page heap has one.
class FreeRuns {
 public:
  constexpr explicit FreeRuns(const Region& region) : region_(&region) {}

  /// Adds a run at the head of its list, where find() takes it, or at the tail, where last_of() does. The tag holds the
  /// length.
  void insert(std::uint32_t first, bool at_tail);
  void remove(std::uint32_t first);

  /// A run of at least `length` pages; 0: none is found.
  std::uint32_t find(std::uint32_t length) const;

  /// Likewise with so many pages from a multiple of `alignment` on, among the runs inserted last of those less than
  /// 1/16 longer or shorter, which find() does not look at one by one. O(1).
  std::uint32_t find_near(std::uint32_t length, std::uint32_t alignment) const;

  /// The first run, of the shortest that may do, with so many pages from a multiple of `alignment` on; 0: none.
  /// find() looks at whole lists only, and so past runs of just the right length. O(runs).
  std::uint32_t first_fit(std::uint32_t length, std::uint32_t alignment) const;

  /// Lists are numbered by the length of their runs. That for `length`, at most end_of_lists.
  static std::uint32_t list_of(std::uint32_t length);
  static constexpr std::uint32_t end_of_lists = 28 * 16;
  /// The last list before `list` that has a run; 0: none.
  std::uint32_t next_below(std::uint32_t list) const;
  /// The last run of a list.
  std::uint32_t last_of(std::uint32_t list) const { return ends_[list / row_lists][list % row_lists].tail; }

  /// Pages of all of them.
  std::uint64_t pages() const { return pages_; }

  /// Prefetches what find() reads.
  void prefetch(std::uint32_t length) const {
    const std::uint32_t list = list_of(length);
    __builtin_prefetch(&bitmaps_[list / row_lists]);
    __builtin_prefetch(&ends_[list / row_lists][list % row_lists], 1);
  }

  /// Lists and bitmaps agree with the tags, and there are so many runs. O(runs). Null, or what is broken.
  const char* check(std::uint8_t state, std::uint64_t runs) const;

 private:
  static constexpr unsigned rows = 28;  // up to 2^27 pages: 512 GiB
  static constexpr unsigned row_lists = 16;
  static_assert(end_of_lists == rows * row_lists);

  /// Of one list. They stand together, since they are read together.
  struct Ends {
    std::uint32_t head = 0;  ///< 0: the list is empty
    std::uint32_t tail = 0;  ///< valid where there is a head
  };

  PageTag& tag(std::uint32_t page) const { return region_->pages[page]; }
  std::uint32_t fit_in(std::uint32_t list, std::uint32_t length, std::uint32_t alignment,
                       std::uint32_t most_looked_at) const;

  const Region* region_;
  std::uint32_t row_bitmap_ = 0;  // rows with runs
  std::array<std::uint16_t, rows> bitmaps_{};
  std::array<std::array<Ends, row_lists>, rows> ends_{};
  std::uint64_t pages_ = 0;
};

}  // namespace blockyard::pages
