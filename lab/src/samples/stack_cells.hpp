// What the call stacks of a journal's events did in short stretches of time ("columns"). A cell is one place in a tree
// of stacks in one column; only occupied cells are kept, as they are few.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "samples/row.hpp"
#include "samples/samples.h"

namespace blockyard::samples {

/// As by_samples_stack_events(). Throws std::bad_alloc.
void stack_events(std::span<const Row> rows, const by_samples_stack_source& source, const by_samples_stack_rows& found,
                  double* sums);

/// As the functions by_samples_cells_*(). One bit for each place and column, of each kind.
class StackCells {
 public:
  /// Throws std::bad_alloc. Everything given must outlive it. O(rows + places * columns / 64).
  StackCells(std::span<const Row> rows, const by_samples_stack_rows& stacks, const std::uint32_t* place_of_node,
             std::uint32_t places, std::uint32_t columns);

  std::uint64_t count(std::size_t kind) const;
  void join();
  /// Throws std::bad_alloc.
  void copy(const by_samples_cell_columns* to, std::uint32_t* group) const;

 private:
  enum Kind : std::size_t { allocated, freed, died };

  /// Calls `work(kind, column, place, row's number)` for each cell that a row belongs to: one or two.
  template <typename Work>
  void for_each(Work work) const;
  std::size_t word(std::size_t column, std::uint32_t place) const { return column * words_ + place / 64; }

  std::span<const Row> rows_;
  by_samples_stack_rows stacks_;
  const std::uint32_t* place_of_node_;
  std::size_t words_;  ///< of each column
  std::size_t columns_;
  unsigned joined_ = 0;  ///< how often columns were joined
  std::array<std::vector<std::uint64_t>, by_samples_cell_kinds> bits_;
};

}  // namespace blockyard::samples
