// The call stacks of one process image, as its threads report them.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "journal/stacks.hpp"
#include "record/channel.hpp"

namespace blockyard::record {

/// Turns the numbers that each thread gives its stacks into nodes of tables that all images of a recording share: a
/// forked child inherits blocks with the stacks of its parent. Times in the tables are ns of the stamps' clock. Not
/// thread-safe.
class StackBook {
 public:
  /// The modules that are mapped, by where they begin: indices in the tables.
  using Mapped = std::map<std::uint64_t, std::uint32_t>;

  /// `program` is the path of the module without one.
  StackBook(std::shared_ptr<journal::Stacks> tables, std::string program, double ns_per_stamp);

  /// A stack_node, stack_clear, module or module_gone of a thread.
  void apply(std::uint32_t thread, std::uint64_t stamp, const std::uint64_t* record);
  /// The node in the tables of an event's site word; journal::no_node when it has none.
  std::uint32_t node(std::uint32_t thread, std::uint64_t site_word) const;

  /// Frees what is kept of a thread of which no record follows.
  void forget_thread(std::uint32_t thread);

  const std::shared_ptr<journal::Stacks>& shared_tables() const { return tables_; }
  const Mapped& mapped() const { return mapped_; }
  /// A forked child starts with the modules of its parent.
  void inherit(Mapped mapped) { mapped_ = std::move(mapped); }

 private:
  void map(std::uint64_t stamp, const std::uint64_t* record);
  void unmap(std::uint64_t stamp, std::uint64_t begin, std::uint64_t end);
  void add_node(std::uint32_t thread, const std::uint64_t* record);
  std::uint32_t frame_at(std::uint64_t address);
  std::uint64_t time_of(std::uint64_t stamp) const {
    return static_cast<std::uint64_t>(static_cast<double>(stamp) * ns_per_stamp_);
  }

  std::shared_ptr<journal::Stacks> tables_;
  std::string program_;
  double ns_per_stamp_;
  Mapped mapped_;
  std::vector<std::vector<std::uint32_t>> nodes_;  ///< by thread and its number
};

}  // namespace blockyard::record
