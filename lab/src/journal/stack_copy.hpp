// Copies call stacks from one journal to another.
#pragma once

#include <cstdint>
#include <vector>

#include "journal/stacks.hpp"

namespace blockyard::journal {

/// Adds the tables that `to` does not have yet. `to` must hold nothing but earlier copies of `from`: indices stay the
/// same. O(1) when nothing is new.
void copy_tables(const Stacks& from, Stacks& to);
/// The same for names, which replace those of `to`.
void copy_names(const Stacks& from, Stacks& to);

/// Copies only the call stacks that are asked for, with new indices. `from` may grow; it and `to` must outlive this.
class StackSubset {
 public:
  StackSubset(const Stacks& from, Stacks& to) : from_(from), to_(to) {}
  /// The node of `to` that is this node of `from`; no_node remains no_node. Expected O(1), O(depth) the first time.
  std::uint32_t node(std::uint32_t index);
  /// Copies the names of all frames copied so far, and when their modules were unmapped.
  void finish();

 private:
  std::uint32_t frame(std::uint32_t index);
  std::uint32_t module(std::uint32_t index);

  const Stacks& from_;
  Stacks& to_;
  std::vector<std::uint32_t> nodes_;
  std::vector<std::uint32_t> frames_;
  std::vector<std::uint32_t> modules_;
  std::vector<std::uint32_t> path_;
};

}  // namespace blockyard::journal
