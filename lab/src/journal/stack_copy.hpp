// Copies call stacks from one journal to another.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "journal/stacks.hpp"

namespace blockyard::journal {

/// Whether texts are copied, or replaced by numbers that keep apart what was apart.
enum class Texts { keep, number };

/// Adds the tables that `to` does not have yet. `to` must hold nothing but earlier copies of `from`: indices stay the
/// same. `program` is the journal's: which modules are not its own remains known. O(1) when nothing is new.
void copy_tables(const Stacks& from, Stacks& to, Texts texts = Texts::keep, const std::string& program = {});
/// The same for names, which replace those of `to`.
void copy_names(const Stacks& from, Stacks& to, Texts texts = Texts::keep);

/// Copies only the call stacks that are asked for, with new indices, into a journal whose time 0 is `origin_ns` of the
/// other. `to` must hold nothing else. `from` may grow; it and `to` must outlive this.
class StackSubset {
 public:
  StackSubset(const Stacks& from, Stacks& to, std::uint64_t origin_ns) : from_(from), to_(to), origin_ns_(origin_ns) {}
  /// The node of `to` that is this node of `from`; no_node remains no_node. Expected O(1), O(depth) the first time.
  std::uint32_t node(std::uint32_t index);
  /// Copies the names of all frames copied so far, and when their modules were unmapped.
  void finish();

 private:
  std::uint64_t moved(std::uint64_t ns) const { return ns < origin_ns_ ? 0 : ns - origin_ns_; }
  std::uint32_t frame(std::uint32_t index);
  std::uint32_t module(std::uint32_t index);

  const Stacks& from_;
  Stacks& to_;
  std::uint64_t origin_ns_;
  std::vector<std::uint32_t> nodes_;
  std::vector<std::uint32_t> frames_;
  std::vector<std::uint32_t> modules_;
  std::vector<std::uint32_t> path_;
};

}  // namespace blockyard::journal
