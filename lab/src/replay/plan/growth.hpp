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
    journal::Event& waiting = waiting_[event.thread];
    if (waiting.block == journal::no_block) {
      if (next_ == allocations_.size() || allocations_[next_] != number) return &event;
      if (!journal::gives_block(event.kind) || event.kind == journal::Kind::reallocate) refuse(number, "allocate");
      ++next_;
      waiting = event;
      return nullptr;
    }
    if (event.kind != journal::Kind::free) refuse(number, "free");
    joined_ = std::exchange(waiting, {});
    joined_.kind = journal::Kind::reallocate;
    joined_.old_block = event.block;
    joined_.time_ns = event.time_ns;
    return &joined_;
  }

 private:
  [[noreturn]] static void refuse(std::uint32_t number, const char* what) {
    throw journal::Error("event " + std::to_string(number) + " does not " + what +
                         " a block, although the routes say so; they belong to another journal");
  }

  std::vector<std::uint32_t> allocations_;
  std::size_t next_ = 0;
  std::vector<journal::Event> waiting_;  ///< by thread
  journal::Event joined_;
};

}  // namespace blockyard::replay
