// Buffers that grow as a std::vector does: allocate a larger block, copy, free the smaller one. With a route, the pair
// is planned as the reallocate that it stands for.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "journal/event.hpp"

namespace blockyard::replay {

/// Feed all events in order. O(1) per event.
class Growth {
 public:
  Growth() = default;
  /// `allocations` are event numbers, ascending, each with a free of the replaced block as its thread's next event.
  explicit Growth(std::vector<std::uint32_t> allocations) : allocations_(std::move(allocations)) {}

  /// The event to plan, valid until the next call; null for an allocation that waits for its free. Throws
  /// journal::Error when another event follows it, or the listed event is none.
  const journal::Event* planned(const journal::Event& event, std::uint32_t number) {
    if (allocations_.empty()) return &event;
    if (event.thread >= waiting_.size()) waiting_.resize(event.thread + std::size_t{1});
    Waiting& waiting = waiting_[event.thread];
    if (waiting.event.block == journal::no_block) {
      if (next_ == allocations_.size() || allocations_[next_] != number) return &event;
      if (!journal::gives_block(event.kind) || event.kind == journal::Kind::reallocate) refuse(number, "allocate");
      ++next_;
      waiting = {event, number};
      return nullptr;
    }
    if (event.kind != journal::Kind::free) refuse(number, "free");
    allocation_ = waiting.number;
    joined_ = std::exchange(waiting, {}).event;
    joined_.kind = journal::Kind::reallocate;
    joined_.old_block = event.block;
    joined_.time_ns = event.time_ns;
    return &joined_;
  }
  /// The number of the allocation that was joined last.
  [[nodiscard]] std::uint32_t allocation() const { return allocation_; }

 private:
  struct Waiting {
    journal::Event event;
    std::uint32_t number = 0;
  };

  [[noreturn]] static void refuse(std::uint32_t number, const char* what) {
    throw journal::Error("event " + std::to_string(number) + " does not " + what +
                         " a block, although the routes say so; they belong to another journal");
  }

  std::vector<std::uint32_t> allocations_;
  std::size_t next_ = 0;
  std::vector<Waiting> waiting_;  ///< by thread
  journal::Event joined_;
  std::uint32_t allocation_ = 0;
};

}  // namespace blockyard::replay
