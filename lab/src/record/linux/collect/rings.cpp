// Draining and the watermark. docs/design/recorder.md explains why it holds.
#include "record/linux/collect/rings.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include <linux/futex.h>
#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace blockyard::record {

bool expedited_barrier_available() {
  const long commands = syscall(SYS_membarrier, MEMBARRIER_CMD_QUERY, 0, 0);
  return commands > 0 && (commands & MEMBARRIER_CMD_GLOBAL_EXPEDITED) != 0 &&
         (commands & MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED) != 0;
}

void expedited_barrier() {
  syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL_EXPEDITED, 0, 0);
  std::atomic_signal_fence(std::memory_order_seq_cst);
}

namespace {

// The slot's thread, if it sleeps. What it waits for is stored before, in the one order of all such stores.
void wake(Slot& slot) {
  if (slot.waiting.load() == 0 || slot.waiting.exchange(0) == 0) return;
  syscall(SYS_futex, &slot.waiting, FUTEX_WAKE, 1, nullptr, nullptr, 0);
}

}  // namespace

void Rings::follow(std::uint32_t index, const Slot& slot) {
  Follower& follower = followers_[index];
  const std::uint32_t serial = slot.serial.load(std::memory_order_acquire);
  if (serial == follower.serial) return;
  follower.serial = serial;
  follower.tid = slot.owner.load(std::memory_order_acquire);
  follower.lane = std::make_shared<Lane>(next_thread_);
  lanes_.push_back(follower.lane);
  new_threads_.push_back({next_thread_, follower.tid});
  ++next_thread_;
  if (stopped_) region_.slot(index).stop.store(1);
}

std::size_t Rings::drain_slot(std::uint32_t index, std::uint64_t now, bool dead) {
  Slot& slot = region_.slot(index);
  Follower& follower = followers_[index];
  // The claim is read first: a thread that finishes a record in between looks as if it had recorded later.
  const std::uint64_t claim = slot.claim.load(std::memory_order_acquire);
  const std::uint64_t head = slot.head.load(std::memory_order_acquire);
  if (slot.owner.load(std::memory_order_acquire) != 0) follow(index, slot);
  const std::uint64_t tail = slot.tail.load(std::memory_order_relaxed);
  if (head != tail) {
    const Control& control = region_.control();
    const std::uint32_t large = slot.large.load(std::memory_order_acquire);
    const std::uint64_t turn = large == 0 ? head : std::clamp<std::uint64_t>(slot.large_from.load(), tail, head);
    follower.lane->take(small_ring(slot), control.small_words - 1, tail, turn);
    if (turn != head) follower.lane->take(region_.large_ring(large), control.large_words - 1, turn, head);
    slot.tail.store(head);
    wake(slot);
  }
  // A record under way may have any stamp since there was last none under way, so the old watermark stays.
  if (dead || static_cast<std::int64_t>(claim - head) <= 0) follower.watermark = now;
  return head - tail;
}

std::size_t Rings::drain(std::uint64_t now, bool dead) {
  const std::uint32_t used = std::min(region_.control().slots_used.load(), region_.control().slot_count);
  while (followers_.size() < used) {
    followers_.emplace_back();
    followers_.back().watermark = watermark_;
  }
  std::size_t moved = 0;
  std::uint64_t lowest = now;
  for (std::uint32_t index = 0; index < used; ++index) {
    moved += drain_slot(index, now, dead);
    lowest = std::min(lowest, followers_[index].watermark);
  }
  watermark_ = dead ? std::numeric_limits<std::uint64_t>::max() : lowest;
  std::erase_if(lanes_, [&](const std::shared_ptr<Lane>& lane) {
    const bool has_ended = lane->empty() && lane.use_count() == 1;
    if (has_ended) ended_threads_.push_back(lane->thread());
    return has_ended;
  });
  return moved;
}

std::vector<Lane*> Rings::lanes() const {
  std::vector<Lane*> result;
  result.reserve(lanes_.size());
  for (const auto& lane : lanes_) result.push_back(lane.get());
  return result;
}

std::size_t Rings::queued_words() const {
  std::size_t words = 0;
  for (const auto& lane : lanes_) words += lane->queued_words();
  return words;
}

std::vector<Rings::NewThread> Rings::take_new_threads() { return std::exchange(new_threads_, {}); }

std::vector<std::uint32_t> Rings::take_ended_threads() { return std::exchange(ended_threads_, {}); }

void Rings::stop() {
  stopped_ = true;
  for (std::uint32_t index = 0; index < followers_.size(); ++index) {
    region_.slot(index).stop.store(1);
    wake(region_.slot(index));
  }
}

bool Rings::is_empty(std::uint32_t index) const {
  const Slot& slot = region_.slot(index);
  return slot.head.load(std::memory_order_acquire) == slot.tail.load(std::memory_order_relaxed);
}

void Rings::release_slot(std::uint32_t index) {
  Slot& slot = region_.slot(index);
  waits_of_the_gone_ += slot.waits.exchange(0);
  waited_of_the_gone_ += slot.waited.exchange(0);
  followers_[index].lane.reset();
  followers_[index].tid = 0;
  slot.claim.store(slot.head.load());  // a thread that ended in the middle of a record left its claim behind
  const std::uint32_t large = slot.large.exchange(0);
  if (large != 0) region_.control().large_free.fetch_or(std::uint64_t{1} << (large - 1));
  slot.owner.store(0, std::memory_order_release);
  region_.control().slots_free.fetch_add(1, std::memory_order_release);
}

bool Rings::slots_are_short() const {
  const auto taken =
      std::count_if(followers_.begin(), followers_.end(), [](const Follower& follower) { return follower.tid != 0; });
  return static_cast<std::uint64_t>(taken) * 4 > std::uint64_t{region_.control().slot_count} * 3;
}

std::uint64_t Rings::live_sum(std::atomic<std::uint64_t> Slot::*member) const {
  std::uint64_t sum = 0;
  for (std::uint32_t index = 0; index < followers_.size(); ++index) sum += (region_.slot(index).*member).load();
  return sum;
}

}  // namespace blockyard::record
