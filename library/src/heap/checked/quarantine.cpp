#include "heap/checked/quarantine.hpp"

#include <array>
#include <atomic>
#include <mutex>

#include "base/pages.hpp"
#include "base/threads.hpp"

namespace blockyard::heap::checked {
namespace {

constinit base::Mutex quarantine_lock;
// Room for as many as had to stay. Between calls one place is empty, so that the next block to enter has it.
constinit std::array<Waiting, 2 * most_waiting> ring{};
constinit std::size_t ring_first = 0;
constinit std::size_t ring_count = 0;
constinit std::size_t ring_bytes = 0;
constinit std::atomic<int> leaving{0};  // blocks of arenas on the way back to them; raised under the lock

void add(const Waiting& block) {
  ring[(ring_first + ring_count) % ring.size()] = block;
  ++ring_count;
  ring_bytes += block.size;
}

Waiting take_oldest() {
  const Waiting taken = ring[ring_first];
  ring_first = (ring_first + 1) % ring.size();
  --ring_count;
  ring_bytes -= taken.size;
  if (taken.of_arena) {
    leaving.fetch_add(1, std::memory_order_relaxed);
  }
  return taken;
}

}  // namespace

Waiting enter_quarantine(const Waiting& block) {
  const std::lock_guard hold(quarantine_lock);
  if (block.plain != nullptr) {
    add(block);
  }
  return ring_count > most_waiting || ring_bytes > most_waiting_bytes ? take_oldest() : Waiting{};
}

Waiting leave_quarantine() {
  const std::lock_guard hold(quarantine_lock);
  return ring_count > 0 ? take_oldest() : Waiting{};
}

std::size_t blocks_in_quarantine() {
  const std::lock_guard hold(quarantine_lock);
  return ring_count;
}

bool stay_in_quarantine(const Waiting& block) {
  const std::lock_guard hold(quarantine_lock);
  if (ring_count + 1 >= ring.size()) {
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

void lock_quarantine() { quarantine_lock.lock(); }
void unlock_quarantine() { quarantine_lock.unlock(); }
void unlock_quarantine_in_child() {
  leaving.store(0, std::memory_order_relaxed);
  quarantine_lock.unlock();
}

}  // namespace blockyard::heap::checked
