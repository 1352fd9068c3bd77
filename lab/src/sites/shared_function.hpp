// The function in which a block lives: the deepest one that is on the stack of its allocation and of its free.
#pragma once

#include <cstdint>
#include <vector>

#include "sites/labels.hpp"

namespace blockyard::sites {

/// Two stacks share their callers up to the first different return address; there, they may still be in one function,
/// at two lines. Wrappers are skipped. A call that was made twice looks like one call made once: the stacks can't tell.
/// O(depth), or O(1) for a pair that was asked for before, mostly. One thread at a time.
class SharedFunction {
 public:
  explicit SharedFunction(const Labels& labels);

  static constexpr std::uint32_t none = 0;
  struct Place {
    std::uint32_t function = none;            ///< a text of Labels; `none` when the stacks have nothing in common
    std::uint32_t caller = journal::no_node;  ///< the node that calls the function; no_node when nothing does
  };
  /// `none` for the stacks of different threads, mostly.
  Place where(std::uint32_t allocation, std::uint32_t free);
  std::uint32_t of(std::uint32_t allocation, std::uint32_t free) { return where(allocation, free).function; }

 private:
  struct Known {
    std::uint32_t allocation = journal::no_node;
    std::uint32_t free = journal::no_node;
    Place place;
  };
  Place find(std::uint32_t allocation, std::uint32_t free) const;

  const Labels& labels_;
  std::vector<std::uint32_t> depth_;  ///< by node
  std::vector<Known> known_;
};

}  // namespace blockyard::sites
