// What the call stacks of a journal's events did in short stretches of time ("columns"). A cell is one place in a tree
// of stacks in one column; only occupied cells are kept, as they are few.
#include <algorithm>
#include <array>
#include <bit>
#include <cassert>
#include <limits>
#include <new>
#include <span>
#include <vector>

#include "samples/row.hpp"
#include "samples/samples.h"

namespace blockyard::samples {
namespace {

constexpr std::uint16_t no_column = std::numeric_limits<std::uint16_t>::max();

constexpr std::uint64_t bit(std::uint32_t place) { return std::uint64_t{1} << (place % 64); }

std::span<const Row> rows_of(const void* rows, std::uint64_t count) { return {static_cast<const Row*>(rows), count}; }

}  // namespace
}  // namespace blockyard::samples

using namespace blockyard::samples;

int by_samples_stack_events(const void* all, std::uint64_t count, const by_samples_stack_source* joined,
                            const by_samples_stack_rows* found, double* sums) try {
  const std::span<const Row> rows = rows_of(all, count);
  const by_samples_stack_source& source = *joined;
  const std::size_t nodes = std::size_t{source.node_count} + 1;
  double* const calls = sums;
  double* const bytes = calls + nodes;
  double* const frees = bytes + nodes;
  double* const ended = frees + nodes;
  std::vector<std::uint16_t> column_of(rows.empty() ? 0 : std::size_t{rows.back().event} + 1, no_column);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const Row& row = rows[i];
    const std::uint32_t event = row.event;
    const double column = std::min(static_cast<double>(row.start) * source.columns_per_ns, source.columns - 1.0);
    const std::uint32_t node =
        event < source.event_count ? std::min(source.node_of_event[event], source.node_count) : source.node_count;
    column_of[event] = found->column[i] = static_cast<std::uint16_t>(column);
    found->node[i] = node;
    if (row.kind == kind_free) {
      frees[node] += 1;
    } else {
      calls[node] += 1;
      bytes[node] += static_cast<double>(row.size);
    }
  }
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const Row& row = rows[i];
    found->died[i] = no_column;
    if (row.kind == kind_free || row.event >= source.pair_count) continue;
    const std::uint32_t end = source.pair[row.event];
    if (end >= column_of.size() || column_of[end] == no_column) continue;
    found->died[i] = column_of[end];
    ended[found->node[i]] += static_cast<double>(row.size);
  }
  return 0;
} catch (const std::bad_alloc&) {
  return 1;
}

/// One bit for each place and column, of each kind.
struct by_samples_cells {
  /// O(rows + places * columns / 64).
  by_samples_cells(std::span<const Row> rows, const by_samples_stack_rows& stacks, const std::uint32_t* place_of_node,
                   std::uint32_t places, std::uint32_t columns)
      : rows_(rows),
        stacks_(stacks),
        place_of_node_(place_of_node),
        words_((std::size_t{places} + 63) / 64),
        columns_(columns) {
    for (auto& of : bits_) of.resize(columns_ * words_);
    for_each([&](Kind kind, std::size_t column, std::uint32_t place, std::size_t) {
      bits_[kind][word(column, place)] |= bit(place);
    });
  }

  std::uint64_t count(std::size_t kind) const {
    std::uint64_t found = 0;
    for (const std::uint64_t word : bits_[kind]) found += static_cast<std::uint64_t>(std::popcount(word));
    return found;
  }

  void join() {
    assert(columns_ % 2 == 0);
    columns_ /= 2;
    ++joined_;
    for (auto& of : bits_) {
      for (std::size_t column = 0; column < columns_; ++column) {
        const std::size_t first = 2 * column * words_;
        for (std::size_t i = 0; i < words_; ++i) of[column * words_ + i] = of[first + i] | of[first + words_ + i];
      }
      of.resize(columns_ * words_);
    }
  }

  void copy(const by_samples_cell_columns* to, std::uint32_t* group) const {
    struct Word {
      std::uint64_t bits;
      std::uint32_t before;  // cells in front of it
    };
    std::array<std::vector<Word>, by_samples_cell_kinds> words;
    for (std::size_t kind = 0; kind < bits_.size(); ++kind) {
      words[kind].reserve(bits_[kind].size());
      std::uint32_t cells = 0;
      for (std::size_t i = 0; i < bits_[kind].size(); ++i) {
        const std::uint64_t bits = bits_[kind][i];
        words[kind].push_back({bits, cells});
        to[kind].occupied[i / words_] += static_cast<std::uint32_t>(std::popcount(bits));
        for (std::uint64_t rest = bits; rest != 0; rest &= rest - 1)
          to[kind].place[cells++] =
              static_cast<std::uint32_t>(i % words_ * 64) + static_cast<std::uint32_t>(std::countr_zero(rest));
      }
    }
    const auto frees_from = static_cast<std::uint32_t>(count(allocated));
    for_each([&](Kind kind, std::size_t column, std::uint32_t place, std::size_t row) {
      const Word& at = words[kind][word(column, place)];
      const std::uint32_t cell = at.before + static_cast<std::uint32_t>(std::popcount(at.bits & (bit(place) - 1)));
      to[kind].calls[cell] += 1;
      to[kind].bytes[cell] += rows_[row].size;
      if (kind != died) group[row] = kind == freed ? cell + frees_from : cell;
    });
  }

 private:
  enum Kind : std::size_t { allocated, freed, died };

  /// Calls `work(kind, column, place, row's number)` for each cell that a row belongs to: one or two.
  template <typename Work>
  void for_each(Work work) const {
    for (std::size_t i = 0; i < rows_.size(); ++i) {
      const std::uint32_t place = place_of_node_[stacks_.node[i]];
      work(rows_[i].kind == kind_free ? freed : allocated, std::size_t{stacks_.column[i]} >> joined_, place, i);
      if (stacks_.died[i] != no_column) work(died, std::size_t{stacks_.died[i]} >> joined_, place, i);
    }
  }

  std::size_t word(std::size_t column, std::uint32_t place) const { return column * words_ + place / 64; }

  std::span<const Row> rows_;
  by_samples_stack_rows stacks_;
  const std::uint32_t* place_of_node_;
  std::size_t words_;  ///< of each column
  std::size_t columns_;
  unsigned joined_ = 0;  ///< how often columns were joined
  std::array<std::vector<std::uint64_t>, by_samples_cell_kinds> bits_;
};

by_samples_cells* by_samples_cells_new(const void* rows, std::uint64_t count, const by_samples_stack_rows* stacks,
                                       const std::uint32_t* place_of_node, std::uint32_t places,
                                       std::uint32_t columns) try {
  return new by_samples_cells(rows_of(rows, count), *stacks, place_of_node, places, columns);
} catch (const std::bad_alloc&) {
  return nullptr;
}

void by_samples_cells_delete(by_samples_cells* cells) { delete cells; }

std::uint64_t by_samples_cells_count(const by_samples_cells* cells, std::uint32_t kind) { return cells->count(kind); }

void by_samples_cells_join(by_samples_cells* cells) { cells->join(); }

int by_samples_cells_copy(const by_samples_cells* cells, const by_samples_cell_columns* found,
                          std::uint32_t* group) try {
  cells->copy(found, group);
  return 0;
} catch (const std::bad_alloc&) {
  return 1;
}
