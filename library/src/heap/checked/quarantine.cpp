#include "heap/checked/quarantine.hpp"

#include <array>
#include <atomic>
#include <mutex>

#include "base/pages.hpp"
#include "base/threads.hpp"

namespace blockyard::heap::checked {
namespace {

constinit base::Mutex lock;
// Room for as many as had to stay. Between calls one place is empty, so that the next block to enter has it.
constinit std::array<Waiting, 2 * most_waiting> ring{};
constinit std::size_t oldest = 0;
constinit std::size_t count = 0;
constinit std::size_t bytes = 0;
constinit std::atomic<int> leaving{0};  // blocks of arenas on the way back to them; raised under the lock

void add(const Waiting& block) {
  ring[(oldest + count) % ring.size()] = block;
  ++count;
  bytes += block.size;
}

Waiting take_oldest() {
  const Waiting taken = ring[oldest];
  oldest = (oldest + 1) % ring.size();
  --count;
  bytes -= taken.size;
  if (taken.of_arena) {
    leaving.fetch_add(1, std::memory_order_relaxed);
  }
  return taken;
}

}  // namespace

Waiting enter_quarantine(const Waiting& block) {
  const std::lock_guard hold(lock);
  if (block.plain != nullptr) {
    add(block);
  }
  return count > most_waiting || bytes > most_waiting_bytes ? take_oldest() : Waiting{};
}

Waiting leave_quarantine() {
  const std::lock_guard hold(lock);
  return count > 0 ? take_oldest() : Waiting{};
}

std::size_t blocks_in_quarantine() {
  const std::lock_guard hold(lock);
  return count;
}

bool stay_in_quarantine(const Waiting& block) {
  const std::lock_guard hold(lock);
  if (count + 1 >= ring.size()) {
    return false;
  }
  add(block);
  return true;
}

void has_left_quarantine(const Waiting& block) {
  if (block.of_arena) {
    leaving.fetch_sub(1, std::memory_order_release);
  }
}

void wait_until_all_have_left() {
  while (leaving.load(std::memory_order_acquire) > 0) {
    base::yield_thread();
  }
}

void lock_quarantine() { lock.lock(); }
void unlock_quarantine() { lock.unlock(); }
void unlock_quarantine_in_child() {
  leaving.store(0, std::memory_order_relaxed);
  lock.unlock();
}

}  // namespace blockyard::heap::checked
