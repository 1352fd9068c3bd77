// The program's side of a recording: one state per thread, and the functions with which hooks and the C API append
// events.
//
// Everything here runs inside malloc of a foreign program: no allocation, no exception, no destructor, nothing of the
// standard library that needs its run-time part. The path of an event takes no lock and makes no system call; only a
// thread's first event and a full ring do.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "record/linux/imports.hpp"
#include "record/linux/mapped.hpp"
#include "record/linux/real.hpp"
#include "record/linux/ring.hpp"
#include "record/linux/stop.hpp"
#include "record/linux/tags.hpp"
#include "unwind/walker.hpp"

namespace blockyard::record {

/// Keys below this one are no recording.
inline constexpr std::uint64_t key_undecided = 0;  ///< also what a forked child finds: the kernel wipes the page
inline constexpr std::uint64_t key_off = 2;
inline constexpr std::uint64_t first_key = 16;

/// What all threads of a process image share. It lies in a page that the kernel zeroes in a forked child, however it
/// was forked, so that a child can never write into its parent's rings.
struct ProcessState {
  std::uint64_t hooks_key;   ///< equals a thread's key while the C allocation functions are recorded
  std::uint64_t engine_key;  ///< the same for the C API
  StampClock clock;
  std::uint32_t fences;
  std::uint32_t lock;             ///< held while attaching, and while a ring is taken
  std::uint32_t explicit_frames;  ///< the program marks its frames itself: no automatic marks
  Mapped mapped;
  std::int32_t pid;
  std::int32_t collector;
  std::uint32_t stack_depth;  ///< 0: no stacks
  std::uint32_t verify_stacks;
  std::size_t (*usable_size)(void*);  ///< the allocator's, of a program that ran before; nullptr: sizes are known
};

struct ThreadState {
  std::uint64_t key;  ///< the recording that `producer` belongs to; starts as 1, which no process state ever holds
  Producer producer;
  std::uint64_t fork_stamp;
  std::uint64_t refused;        ///< the recording that had no slot for this thread
  std::uint32_t busy;           ///< inside the recorder or a real allocation function: nested calls are not recorded
  std::uint32_t present_depth;  ///< depth of nested calls that present a frame
  unwind::Walker* walker;       ///< nullptr: no stacks
  struct Range {
    std::uint64_t begin;
    std::uint64_t end;
  };
  Range reported[8];          ///< objects that were reported as this thread last saw them
  std::uint32_t reported_at;  ///< which of them is the next to be replaced
  ThreadTags tags;
};

extern ProcessState* process;
extern constinit thread_local ThreadState self __attribute__((tls_model("initial-exec")));

/// Makes `self` ready to record; false when it is not recorded. Attaches the process and registers the thread if
/// needed. Keeps errno.
bool prepare_for_hooks();
bool prepare_for_engine();
/// Waits until the ring has room; false when the recording has ended. Keeps errno.
bool wait_for_room(std::uint64_t words);

inline bool hooks_ready() {
  return __builtin_expect(self.key == __atomic_load_n(&process->hooks_key, __ATOMIC_ACQUIRE), 1) || prepare_for_hooks();
}
inline bool engine_ready() {
  return __builtin_expect(self.key == __atomic_load_n(&process->engine_key, __ATOMIC_ACQUIRE), 1) ||
         prepare_for_engine();
}

template <When when>
inline void append(std::uint64_t first, std::uint64_t third = 0, std::uint64_t fourth = 0, const char* text = nullptr) {
  if (__builtin_expect(self.producer.slot->stop.load(std::memory_order_relaxed) != 0, 0)) return;
  const std::uint64_t words = words_of(first);
  if (!self.producer.has_room(words) && !wait_for_room(words)) return;
  self.producer.append<when>(first, third, fourth, text);
}

/// The frame of a hook, from which its caller's stack is walked: to be used in the hook itself, not in what it calls.
#define BLOCKYARD_FRAME __builtin_frame_address(0)

/// Walks the stack of the hook whose frame this is and reports what of it is new. Returns its number in this thread.
std::uint32_t walk_stack(const void* frame);

/// The site word of an event in the hook whose frame this is; 0 when it needs none.
inline std::uint64_t site_word(const void* frame) {
  return pack_pair(self.walker == nullptr ? 0 : walk_stack(frame), self.tags.current);
}

/// Appends an event that ends a block, or whose size comes with another.
template <When when>
inline void append_event(std::uint64_t first, const void* frame) {
  const std::uint64_t site = site_word(frame);
  append<when>(site == 0 ? first : first | site_flag, site);
}
/// Appends an event that gives a block.
template <When when>
inline void append_event(std::uint64_t first, std::uint64_t size, const void* frame) {
  const std::uint64_t site = site_word(frame);
  append<when>(site == 0 ? first : first | site_flag, size, site);
}

/// While one lives, the thread's calls are not recorded. Only C functions may run under it: nothing throws.
class Busy {
 public:
  // The fences keep the compiler from moving what is done meanwhile out: is_busy() of process.cpp relies on it.
  Busy() {
    self.busy = 1;
    std::atomic_signal_fence(std::memory_order_seq_cst);
  }
  ~Busy() {
    std::atomic_signal_fence(std::memory_order_seq_cst);
    self.busy = 0;
  }
  Busy(const Busy&) = delete;
  Busy& operator=(const Busy&) = delete;
};

/// The real allocator just gave a block. `kind` is one of the allocate kinds. Call it under Busy.
inline void record_allocation(RecordKind kind, void* block, std::size_t size, std::size_t alignment,
                              const void* frame) {
  if (block == nullptr || !hooks_ready()) return;
  const unsigned log2 = alignment <= 1 ? 0u : 64u - static_cast<unsigned>(__builtin_clzll(alignment - 1));
  append_event<When::after>(pack(kind, reinterpret_cast<std::uintptr_t>(block)), pack_size(size, log2), frame);
  if (__builtin_expect(limits_are_watched, 0)) watch_event(kind, size);
}

/// Whose block it is: malloc's, which can say how large it is, or that of an allocator that was not asked.
enum class Owner { malloc, other };

/// The real allocator is about to get a block back. Call it under Busy.
template <Owner owner = Owner::malloc>
inline void record_free(void* block, const void* frame) {
  if (block == nullptr || !hooks_ready()) return;
  if (owner == Owner::malloc && __builtin_expect(process->usable_size != nullptr, 0)) {
    append_event<When::before>(pack(RecordKind::free_of_size, reinterpret_cast<std::uintptr_t>(block)),
                               process->usable_size(block), frame);
    return;
  }
  append_event<When::before>(pack(RecordKind::free, reinterpret_cast<std::uintptr_t>(block)), frame);
  if (__builtin_expect(limits_are_watched, 0)) watch_event(RecordKind::free, 0);
}

/// The calling thread is about to forbid itself the cycle counter, or nearly all system calls: nothing more is recorded
/// of it. A child made by vfork() does not leave: it is its parent that would. Returns what return_to_recording() takes
/// where that was refused.
std::uint64_t leave_recording();
void return_to_recording(std::uint64_t left);
/// Some objects may have been unloaded: tells the collector which, and the walkers that they were.
void notice_unloaded();
/// Reports a thread's name to the collector. At most max_text_bytes are kept.
void record_text(RecordKind kind, const char* text, bool engine);
/// Finds what hooks else look for at their first call.
void find_real_operators();
void find_thread_functions();
/// Waits until the engine's journal after `closed_before` others is complete; false when it could not be written.
bool wait_for_engine_close(std::uint32_t closed_before);

}  // namespace blockyard::record
