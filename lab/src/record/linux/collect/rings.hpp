// Takes records out of a program's rings and says up to which stamp they are complete.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "record/channel.hpp"
#include "record/collect/lane.hpp"

namespace blockyard::record {

/// Makes every thread of every registered process pass a full memory barrier: what it stored before is visible after.
/// Without the kernel's help (false) the programs must fence by themselves.
bool expedited_barrier_available();
void expedited_barrier();

/// The rings of one process image. Not thread-safe; the program's threads write meanwhile.
class Rings {
 public:
  /// A thread that took a slot, as the session numbers them.
  struct NewThread {
    std::uint32_t thread;
    std::uint32_t tid;
  };

  /// `first_thread` numbers the first thread that appears; `now` is a stamp before which nothing can have been
  /// recorded.
  Rings(Region region, std::uint32_t first_thread, std::uint64_t now)
      : region_(region), next_thread_(first_thread), watermark_(now) {}

  /// Moves complete records into the lanes. `now` is a stamp from before an expedited barrier that ended before this
  /// call. With `dead`, no thread is running any more. Returns the number of words moved.
  std::size_t drain(std::uint64_t now, bool dead);

  /// No record with an earlier stamp will be drained any more.
  std::uint64_t watermark() const { return watermark_; }
  /// The lanes, including those of threads that are gone but have records left.
  std::vector<Lane*> lanes() const;
  std::size_t queued_words() const;
  /// Threads that appeared since the last call.
  std::vector<NewThread> take_new_threads();
  /// Threads that are gone and whose last record was taken out of its lane since the last call.
  std::vector<std::uint32_t> take_ended_threads();

  /// Tells the program to record no more.
  void stop();
  /// Frees the slots of threads for which `is_gone(tid)` holds. Calls `discard(index)` first, which gives the ring's
  /// memory back: another thread may write there as soon as the slot is free. Returns how many became free.
  template <typename IsGone, typename Discard>
  std::size_t release_slots(IsGone is_gone, Discard discard);
  bool slots_are_short() const;

  std::uint64_t waits() const { return waits_of_the_gone_ + live_sum(&Slot::waits); }
  std::uint64_t waited() const { return waited_of_the_gone_ + live_sum(&Slot::waited); }

 private:
  struct Follower {
    std::uint32_t serial = 0;  ///< the thread of the slot that `lane` belongs to
    std::uint32_t tid = 0;
    std::uint64_t watermark = 0;  ///< of this slot alone
    std::shared_ptr<Lane> lane;
  };

  void follow(std::uint32_t index, const Slot& slot);
  std::size_t drain_slot(std::uint32_t index, std::uint64_t now, bool dead);
  std::uint64_t live_sum(std::atomic<std::uint64_t> Slot::*member) const;
  bool is_empty(std::uint32_t index) const;
  void release_slot(std::uint32_t index);

  Region region_;
  std::uint32_t next_thread_;
  std::uint64_t watermark_;
  bool stopped_ = false;
  std::uint64_t waits_of_the_gone_ = 0;
  std::uint64_t waited_of_the_gone_ = 0;
  std::vector<Follower> followers_;  ///< one for each slot that was ever used
  std::vector<std::shared_ptr<Lane>> lanes_;
  std::vector<NewThread> new_threads_;
  std::vector<std::uint32_t> ended_threads_;
};

template <typename IsGone, typename Discard>
std::size_t Rings::release_slots(IsGone is_gone, Discard discard) {
  std::size_t released = 0;
  for (std::uint32_t index = 0; index < followers_.size(); ++index) {
    // Whether the thread is gone is checked first: then its ring's contents are final.
    if (followers_[index].lane == nullptr || !is_gone(followers_[index].tid) || !is_empty(index)) continue;
    discard(index);
    release_slot(index);
    ++released;
  }
  return released;
}

}  // namespace blockyard::record
