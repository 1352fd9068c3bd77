// A walker for tests: walks from the function that asks, and keeps what the sink got.
#pragma once

#define UNW_LOCAL_ONLY
#include <libunwind.h>

#include <cstdint>
#include <ostream>
#include <utility>
#include <vector>

#include <dlfcn.h>

#include "unwind/objects.hpp"
#include "unwind/walker.hpp"

namespace blockyard::unwind {

struct Stack {
  std::vector<std::uint64_t> addresses;  ///< from the last frame on
  End end = End::complete;
  friend bool operator==(const Stack&, const Stack&) = default;
};

/// A walker and the nodes that it has given out.
class Walked final : public Sink {
 public:
  explicit Walked(unsigned depth = 4096) : walker_(Walker::create(depth)) {
    use_find_object(dlsym(RTLD_DEFAULT, "_dl_find_object"));
    walker_->start_thread();
  }
  ~Walked() { Walker::destroy(walker_); }
  Walked(const Walked&) = delete;
  Walked& operator=(const Walked&) = delete;

  /// The stack of the function that calls this, from its caller on, read from the nodes.
  [[gnu::always_inline]] Stack walk_here() { return stack_of(walk(caller_of(__builtin_frame_address(0)))); }
  std::uint32_t walk(const Start& start) { return walker_->walk(start, *this); }

  Stack stack_of(std::uint32_t node) const {
    Stack stack;
    for (; node != no_node; node = nodes_.at(node - 1).first) {
      const std::uint64_t frame = nodes_.at(node - 1).second;
      if ((frame & end_marker) != 0) {
        stack.end = static_cast<End>(frame & 0xff);
      } else {
        stack.addresses.push_back(frame >> 1);
      }
    }
    return stack;
  }
  std::size_t nodes() const { return nodes_.size(); }
  std::size_t cleared() const { return cleared_; }

  void add_node(std::uint32_t node, std::uint32_t parent, std::uint64_t frame) override {
    if (node != nodes_.size() + 1 || parent >= node) broken_ = true;
    nodes_.emplace_back(parent, frame);
  }
  void clear_nodes() override {
    nodes_.clear();
    ++cleared_;
  }
  /// A node came out of its order.
  bool is_broken() const { return broken_; }

 private:
  Walker* walker_;
  std::vector<std::pair<std::uint32_t, std::uint64_t>> nodes_;
  std::size_t cleared_ = 0;
  bool broken_ = false;
};

/// The same stack by libunwind, one step at a time. Call it in the function that calls walk_here().
[[gnu::always_inline]] inline Stack libunwind_here() {
  Stack stack;
  unw_context_t context;
  unw_cursor_t cursor;
  unw_getcontext(&context);
  unw_init_local(&cursor, &context);
  int stepped = 0;
  while ((stepped = unw_step(&cursor)) > 0) {
    unw_word_t address = 0;
    unw_get_reg(&cursor, UNW_REG_IP, &address);
    if (address == 0) break;
    stack.addresses.push_back(address);
  }
  if (stepped < 0) stack.end = End::unknown;
  return stack;
}

}  // namespace blockyard::unwind
