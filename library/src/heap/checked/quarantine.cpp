#include "heap/checked/quarantine.hpp"

#include <atomic>
#include <mutex>

#include "base/pages.hpp"
#include "base/threads.hpp"
#include "checks/quarantine.hpp"

namespace blockyard::heap::checked {
namespace {

constinit base::Mutex quarantine_lock;
constinit checks::Quarantine<Waiting> quarantine;
constinit std::size_t waiting_bytes = 0;
constinit std::atomic<int> leaving{0};  // blocks of arenas on the way back to them; raised under the lock

bool add(const Waiting& block) {
  waiting_bytes += block.size;
  return quarantine.push(block);
}

Waiting take_out(const Waiting& block) {
  waiting_bytes -= block.size;
  if (block.of_arena) {
    leaving.fetch_add(1, std::memory_order_relaxed);
  }
  return block;
}

}  // namespace

Waiting enter_quarantine(const Waiting& block) {
  const std::lock_guard hold(quarantine_lock);
  if (block.plain != nullptr && !add(block)) {
    return take_out(block);
  }
  const bool too_many = quarantine.count() > most_waiting || waiting_bytes > most_waiting_bytes;
  return too_many ? take_out(quarantine.pop()) : Waiting{};
}

Waiting leave_quarantine() {
  const std::lock_guard hold(quarantine_lock);
  return quarantine.count() > 0 ? take_out(quarantine.pop()) : Waiting{};
}

std::size_t blocks_in_quarantine() {
  const std::lock_guard hold(quarantine_lock);
  return quarantine.count();
}

void stay_in_quarantine(const Waiting& block) {
  const std::lock_guard hold(quarantine_lock);
  add(block);
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
