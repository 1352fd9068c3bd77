// The quarantine of the checked heap, one for all threads (checks/quarantine.hpp).
#pragma once

#include <atomic>
#include <cstddef>
#include <mutex>

#include "base/threads.hpp"
#include "checks/quarantine.hpp"

namespace blockyard::heap::checked {

/// A freed block in quarantine: as the plain heap knows it, and the bytes that were the program's.
struct Waiting {
  void* plain = nullptr;  ///< null: it is none
  unsigned char* block = nullptr;
  std::size_t size = 0;
  std::size_t guarded_bytes = 0;  ///< of a guarded block: bytes from `plain` that nobody may touch, its guard included
  bool poisoned = true;           ///< it holds poison; else all its pages are among those that nobody may touch
  bool of_arena = false;          ///< it is of an arena, which may be destroyed
};

/// Thread-safe.
class SharedQuarantine {
 public:
  static constexpr std::size_t most_blocks = 1024;
  static constexpr std::size_t most_bytes = std::size_t{16} << 20;

  /// Takes a freed block in. Returns the oldest one when that makes too many, to be called again until it returns none;
  /// the first call brings `block`, later ones an empty one.
  Waiting enter(const Waiting& block) {
    const std::lock_guard hold(lock);
    if (block.plain != nullptr && !add(block)) {
      return take_out(block);
    }
    const bool too_many = waiting_.count() > most_blocks || bytes_ > most_bytes;
    return too_many ? take_out(waiting_.pop()) : Waiting{};
  }
  /// The oldest block, out of turn.
  Waiting leave() {
    const std::lock_guard hold(lock);
    return waiting_.count() > 0 ? take_out(waiting_.pop()) : Waiting{};
  }
  /// Blocks that wait, racy: those of arenas that do so now are among the first so many to leave.
  std::size_t count() const { return waiting_.count(); }
  /// Takes a block that has just left in once more, as the newest: the system refused to make its pages accessible. No
  /// block of an arena. Where memory is exhausted its pages are nobody's for good.
  void stay(const Waiting& block) {
    const std::lock_guard hold(lock);
    add(block);
  }
  /// To be called with every block that one of these returned, once it is back in its heap.
  void has_left(const Waiting& block) {
    if (block.of_arena) {
      leaving_.fetch_sub(1, std::memory_order_release);
    }
  }
  /// Returns when every block of an arena that had left is back in its heap: until then the heap must not go.
  void wait_until_all_have_left() {
    while (leaving_.load(std::memory_order_acquire) > 0) {
      base::yield_thread();
    }
  }
  /// In a forked child, where the threads that were giving blocks back are gone.
  void forget_leaving() { leaving_.store(0, std::memory_order_relaxed); }

  base::Mutex lock;  ///< held across a fork

 private:
  bool add(const Waiting& block) {
    bytes_ += block.size;
    return waiting_.push(block);
  }
  Waiting take_out(const Waiting& block) {
    bytes_ -= block.size;
    if (block.of_arena) {
      leaving_.fetch_add(1, std::memory_order_relaxed);
    }
    return block;
  }

  checks::Quarantine<Waiting> waiting_;
  std::size_t bytes_ = 0;
  std::atomic<int> leaving_{0};  // blocks of arenas on the way back to them; raised under the lock
};

}  // namespace blockyard::heap::checked
