// A thread's state in the lifetimes, and how it passes from threads that end to those that start.
//
// Only its thread writes it; other threads read the figures. Nothing here is ever destroyed, so static constructors and
// destructors and thread_local destructors may allocate.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "base/pages.hpp"
#include "base/threads.hpp"
#include "blockyard/detail/block_slab.hpp"
#include "blockyard/temp.hpp"
#include "blockyard/temp_job.hpp"
#include "lifetime/chunk_store.hpp"
#include "threads/registry.hpp"

namespace blockyard::lifetime {

using block::Relaxed;

/// An array in its own pages that doubles and never shrinks.
template <class T>
class PageArray {
 public:
  /// False when memory is exhausted.
  bool push(const T& value) {
    if (!make_room()) {
      return false;
    }
    data_[count_++] = value;
    return true;
  }
  /// Whether one more has room, from now on.
  bool make_room() { return count_ != room_ || grow(); }
  T& operator[](std::size_t index) { return data_[index]; }
  T& newest() { return data_[count_ - 1]; }
  std::size_t count() const { return count_; }
  bool is_full() const { return count_ == room_; }
  /// Takes its first pages, as far as it has none and memory is left, and has the system provide them.
  void prepare() {
    if (room_ == 0 && grow()) {
      std::memset(static_cast<void*>(data_), 0, room_ * sizeof(T));
    }
  }
  void cut(std::size_t count) { count_ = count; }
  T* begin() { return data_; }
  T* end() { return data_ + count_; }

 private:
  bool grow() {
    static_assert(std::is_trivially_copyable_v<T>);
    const std::size_t room = room_ == 0 ? 8192 / sizeof(T) : room_ * 2;
    void* const memory = base::reserve_pages(room * sizeof(T));
    if (memory == nullptr) {
      return false;
    }
    if (data_ != nullptr) {
      std::memcpy(memory, static_cast<void*>(data_), count_ * sizeof(T));
      base::release_pages(data_, room_ * sizeof(T));
    }
    data_ = static_cast<T*>(memory);
    room_ = room;
    return true;
  }

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
  std::size_t demand;  ///< the thread's demand before it
  std::size_t before;  ///< blocks of the frame that did not fit before it, freed ones included
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

struct ThreadState : threads::Registered<ThreadState> {
  std::byte* region = nullptr;
  std::size_t reserved = 0;              ///< bytes of address space at `region`
  std::size_t region_bytes = 0;          ///< bytes of it in use
  std::uint32_t settings = 0;            ///< version of the settings that the region has
  std::uint64_t frame = 0;               ///< differs for every frame of every thread
  std::size_t demand = 0;                ///< bytes that blocks that did not fit would take now in an endless region
  std::size_t peak_demand = 0;           ///< most bytes that an endless region would have had in use in this frame
  std::size_t outside_ever = 0;          ///< blocks of this frame that did not fit, freed ones included
  std::size_t open_cursors = 0;          ///< cursors whose pieces are in the region
  std::uintptr_t pinned = 0;             ///< end of those pieces: no scope goes back below it; 0 without pieces
  std::uintptr_t pinned_before[8] = {};  ///< by a cursor's depth, from 1: `pinned` before its newest piece
  PageArray<OutsideBlock> outside;       ///< this frame's blocks that did not fit
  PageArray<WatchedBlock> blocks;        ///< in a watched process: this frame's blocks in the region, by address
  TempRegion watched_temp{};             ///< in a watched process, in place of temp_region()
  JobCursor watched_job{};               ///< likewise, of job_cursor()
  TempFigures figures;

  Relaxed<std::uint32_t> number;  ///< of the thread, counted from 1; 0: no thread has this state
};

/// The calling thread's; nullptr before it allocates.
extern constinit thread_local ThreadState* this_thread __attribute__((tls_model("initial-exec")));

/// Whether the calling thread's state was taken back once, at its end. What it holds from then on may be lost: nobody
/// need call its destructors again. So it holds nothing but a state that others can take back.
bool thread_has_left();

/// Gives the calling thread a state. nullptr when memory is exhausted. Takes a lock; O(1).
ThreadState* enter_thread();
inline ThreadState* ensure_thread() { return this_thread != nullptr ? this_thread : enter_thread(); }
/// The same for an allocation at `alignment`: nullptr with errno EINVAL for a bad one, ENOMEM when memory is exhausted.
ThreadState* ensure_thread(std::size_t alignment);

/// The one lock of this component, for all that is rare: threads that begin and end, settings, fresh chunks and pieces
/// of memory, and blocks that leak detection follows. Whoever holds it takes no other lock. Forks leave it free.
extern base::Mutex rare_lock;

/// The newest of all states, which links to the others by next_known.
ThreadState* known_threads();

/// Adds what ended threads counted to `total`.
void add_ended(by_temp_statistics& total);
/// Adds what a live thread counted to `total`.
void add_figures(by_temp_statistics& total, const TempFigures& figures);

}  // namespace blockyard::lifetime
