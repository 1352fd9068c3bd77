// What the lifetimes keep of a thread, and its way from threads that end to those that start.
//
// Only its thread writes it; other threads read the figures. Nothing here is ever destroyed: static constructors and
// destructors and thread_local destructors may allocate.
#pragma once

#include <cstddef>
#include <cstdint>

#include "blockyard/detail/block_slab.hpp"
#include "blockyard/temp.hpp"
#include "blockyard/temp_job.hpp"
#include "lifetime/chunk_store.hpp"

namespace blockyard::lifetime {

using block::Relaxed;

/// An array in pages of its own that doubles and never shrinks.
template <class T>
class PageArray {
 public:
  /// False when memory is exhausted.
  bool push(const T& value) {
    if (count_ == room_ && !grow()) {
      return false;
    }
    data_[count_++] = value;
    return true;
  }
  T& operator[](std::size_t index) { return data_[index]; }
  T& newest() { return data_[count_ - 1]; }
  std::size_t count() const { return count_; }
  bool is_full() const { return count_ == room_; }
  void cut(std::size_t count) { count_ = count; }
  T* begin() { return data_; }
  T* end() { return data_ + count_; }

 private:
  bool grow();

  T* data_ = nullptr;
  std::size_t count_ = 0;
  std::size_t room_ = 0;
};

/// A temp block of a watched process.
struct WatchedBlock {
  std::uintptr_t begin;
  std::size_t size;
  bool live;
};

/// A temp block that did not fit its region.
struct OutsideBlock {
  void* block;         ///< nullptr: freed
  std::size_t demand;  ///< of the thread, before it
  std::size_t before;  ///< how many of the frame did not fit before it: slots are used again, this is not
};

struct TempFigures {
  Relaxed<std::uint64_t> frames;
  Relaxed<std::uint64_t> frames_by_peak[BY_PEAK_BUCKETS];
  Relaxed<std::size_t> region_bytes;
  Relaxed<std::size_t> peak_bytes;
  Relaxed<std::size_t> peak_demand_bytes;
  Relaxed<std::uint64_t> overflow_full;
  Relaxed<std::uint64_t> overflow_too_large;
  Relaxed<std::uint64_t> grown;
};

struct ThreadState {
  std::byte* region = nullptr;
  std::size_t reserved = 0;      ///< bytes of address space at `region`
  std::size_t region_bytes = 0;  ///< of it, those in use
  std::uint32_t settings = 0;    ///< which by_temp_configure() the region obeys
  std::uint64_t frame = 0;       ///< differs for every frame of every thread
  std::size_t demand = 0;        ///< bytes by which an endless region would be fuller now: of blocks that did not fit
  std::size_t peak_demand = 0;   ///< bytes that an endless region would have had in use at the most in this frame
  std::size_t outside_ever = 0;  ///< blocks of this frame that did not fit, those freed since included
  std::size_t open_cursors = 0;  ///< whose pieces lie in the region
  std::uintptr_t pinned = 0;     ///< address: no scope goes back below it, for those pieces' sake; 0 without any
  std::uintptr_t pinned_before[8] = {};  ///< by a cursor's depth, from 1: `pinned` before its newest row of blocks
  PageArray<OutsideBlock> outside;       ///< this frame's blocks that did not fit
  PageArray<WatchedBlock> blocks;        ///< of a watched process: this frame's blocks in the region, in address order
  TempRegion watched_temp{};             ///< of a watched process, whose by_temp_region stays null
  JobCursor watched_job{};
  TempFigures figures;

  Relaxed<std::uint32_t> number;  ///< of the thread, counted from 1; 0: no thread has this state
  ThreadState* next_parked = nullptr;
  ThreadState* next_known = nullptr;  ///< all there ever were
};

/// The calling thread's; nullptr before it allocates.
extern constinit thread_local ThreadState* this_thread __attribute__((tls_model("initial-exec")));

/// Gives the calling thread a state. nullptr when memory is exhausted. Takes a lock; O(1).
ThreadState* enter_thread();

/// From now on, and from before the first lock of this room is taken, forks leave its locks free. O(1).
void guard_forks();

/// The newest of all states, and through next_known the others.
ThreadState* known_threads();

/// What threads that have ended counted, into `total`.
void add_ended(by_temp_statistics& total);
/// What the thread of `state` counted, into `total`.
void add_figures(by_temp_statistics& total, const TempFigures& figures);

}  // namespace blockyard::lifetime
