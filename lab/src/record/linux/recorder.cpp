// Registers a thread, waits for room: everything about recording except the path of an event.
#include "record/linux/recorder.hpp"

#include <cstring>

#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/kept_errno.hpp"
#include "record/linux/frames.hpp"
#include "record/linux/loaded_objects.hpp"
#include "record/linux/modules.hpp"
#include "record/linux/process.hpp"
#include "record/linux/state_lock.hpp"
#include "record/linux/walk_stack.hpp"

namespace blockyard::record {
namespace {

/// Watches over a wait that only the collector can end.
class Patience {
 public:
  /// Call it after each of the wait's steps. False when the collector is gone: the recording has ended.
  bool lasts() {
    constexpr std::uint64_t second_ns = 1'000'000'000;
    const std::uint64_t now = monotonic_ns();
    if (now < next_look_) return true;
    next_look_ = now + second_ns / 2;
    const std::uint64_t heartbeat = process->mapped.control->heartbeat.load(std::memory_order_relaxed);
    if (heartbeat != heartbeat_) alive_at_ = now;
    heartbeat_ = heartbeat;
    // A collector in another process namespace has no number here: it counts as gone after a minute without a
    // heartbeat.
    if (now - alive_at_ < 60 * second_ns && !collector_is_gone(process->collector)) return true;
    end_recording();
    return false;
  }

 private:
  std::uint64_t alive_at_ = monotonic_ns();
  std::uint64_t next_look_ = alive_at_ + 500'000'000;
  std::uint64_t heartbeat_ = 0;
};

// A thread starts with what its creator forbade itself.
bool may_read_cycles() {
#if defined(__x86_64__)
  int allowed = PR_TSC_ENABLE;
  return syscall(SYS_prctl, PR_GET_TSC, &allowed, 0, 0, 0) != 0 || allowed == PR_TSC_ENABLE;
#else
  return true;
#endif
}

// Finds the calling thread a free slot. It waits a while for slots of ended threads, but not forever: threads that have
// a slot may be waiting for this one.
bool register_thread(std::uint64_t key) {
  ProcessState& state = *process;
  const bool may_read = may_read_cycles();
  const auto tid = static_cast<std::uint32_t>(syscall(SYS_gettid));
  constexpr int most_attempts = 500;
  Slot* slot = nullptr;
  for (int attempt = 0; attempt < most_attempts && slot == nullptr; ++attempt) {
    if (attempt != 0) pause_ns(1'000'000);
    const StateLock lock(state);
    // Under the lock, because what is mapped goes when the recording ends.
    if (state.hooks_key != key && state.engine_key != key) return false;
    Control& control = *state.mapped.control;
    slot = may_read ? state.mapped.take_slot(tid) : nullptr;
    if (slot != nullptr) {
      slot->busy.store(&self.busy);
      self.producer.bind(*slot, control.small_words, state.clock, state.fences != 0);
      break;
    }
    const bool may_come = may_read && control.slots_used.load() == control.slot_count && attempt + 1 < most_attempts;
    if (may_come) continue;
    (may_read ? control.threads_refused : control.threads_left).fetch_add(1);
    self.refused = key;
    return false;
  }
  self.walker = walker_of(*slot);
  forget_reported();
  self.key = key;
  number_all_tags();
  return true;
}

// The small ring is full: threads that have much to say get a large one, as long as there are some.
bool grow_ring() {
  Producer& producer = self.producer;
  if (producer.slot->large.load(std::memory_order_relaxed) != 0) return false;
  ProcessState& state = *process;
  const Control& control = *state.mapped.control;
  if (control.large_used.load(std::memory_order_relaxed) == control.large_count &&
      control.large_free.load(std::memory_order_relaxed) == 0)
    return false;
  std::uint32_t number = 0;
  const StateLock lock(state, self.key);
  if (!lock.is_held()) return false;
  std::uint64_t* ring = state.mapped.take_large(number);
  if (ring != nullptr) producer.grow(ring, control.large_words, number);
  return ring != nullptr;
}

bool register_if_recording(const std::uint64_t& process_key) {
  const std::uint64_t key = __atomic_load_n(&process_key, __ATOMIC_ACQUIRE);
  if (key < first_key || self.refused == key) return false;
  return self.key == key || register_thread(key);
}

}  // namespace

constinit thread_local ThreadState self
    __attribute__((tls_model("initial-exec"))) = {1, {}, 0, 0, 0, 0, nullptr, {}, 0, {}};

bool prepare_for_hooks() {
  const std::uint64_t key = __atomic_load_n(&process->hooks_key, __ATOMIC_ACQUIRE);
  if (key == key_off) return false;
  const base::KeptErrno kept;
  const std::uint32_t was_busy = self.busy;
  self.busy = 1;
  if (key == key_undecided) decide();
  const bool ready = register_if_recording(process->hooks_key);
  self.busy = was_busy;
  return ready;
}

bool prepare_for_engine() {
  const base::KeptErrno kept;
  const std::uint32_t was_busy = self.busy;
  self.busy = 1;
  const bool ready = register_if_recording(process->engine_key);
  self.busy = was_busy;
  return ready;
}

bool wait_for_room(std::uint64_t words) {
  const base::KeptErrno kept;
  if (grow_ring()) return true;
  Producer& producer = self.producer;
  Slot& slot = *producer.slot;
  const std::uint64_t begin = stamp_before(producer.clock);
  slot.waits.fetch_add(1, std::memory_order_relaxed);
  Patience patience;
  bool stopped = false;
  for (;;) {
    slot.waiting.store(1);
    stopped = slot.stop.load() != 0;
    if (stopped || producer.has_room(words)) break;
    sleep_on(slot.waiting, 1);
    stopped = !patience.lasts();
    if (stopped) break;
  }
  slot.waiting.store(0, std::memory_order_relaxed);
  slot.waited.fetch_add(stamp_after(producer.clock) - begin, std::memory_order_relaxed);
  return !stopped;
}

void notice_unloaded() {
  const base::KeptErrno kept;
  const std::uint32_t was_busy = self.busy;
  self.busy = 1;
  if (process->stack_depth != 0 && (hooks_ready() || engine_ready())) withdraw_modules();
  self.busy = was_busy;
}

std::uint64_t leave_recording() {
  const Busy busy;
  const std::uint64_t key = __atomic_load_n(&process->hooks_key, __ATOMIC_ACQUIRE);
  if (key < first_key || self.refused == key) return 0;
  if (process->pid != getpid()) return 0;  // a vfork child, which has its parent's memory
  process->mapped.control->threads_left.fetch_add(1);
  self.refused = key;
  const std::uint64_t left = self.key;
  self.key = 1;
  return left;
}

void return_to_recording(std::uint64_t left) {
  if (left == 0) return;
  const Busy busy;
  process->mapped.control->threads_left.fetch_sub(1);
  self.refused = 0;
  self.key = left;
}

void mark_frame(bool automatic) {
  if (self.busy != 0) return;
  const Busy busy;
  if (!engine_ready()) {
    // A program may draw before it allocates.
    if (!hooks_ready()) return;
  }
  if (automatic && process->explicit_frames != 0) return;
  if (!automatic) process->explicit_frames = 1;
  append<When::before>(pack(RecordKind::frame_mark, 0));
  if (limits_are_watched) watch_frame();
}

std::uint32_t& present_depth() { return self.present_depth; }

void notice_lookup() {
  if (__atomic_load_n(&process->hooks_key, __ATOMIC_ACQUIRE) >= first_key) hook_new_objects();
}

void record_text(RecordKind kind, const char* text, bool engine) {
  if (self.busy != 0 || text == nullptr) return;
  const Busy busy;
  if (!engine_ready() && !hooks_ready()) return;
  const std::size_t bytes = strnlen(text, max_text_bytes);
  append<When::before>(pack(kind, bytes, engine), 0, 0, text);
  if (limits_are_watched && kind == RecordKind::phase_mark) watch_phase(text);
}

bool wait_for_engine_close(std::uint32_t closed_before) {
  const base::KeptErrno kept;
  const Control& control = *process->mapped.control;
  Patience patience;
  while (control.engine_closed.load() == closed_before) {
    pause_ns(100'000);
    if (!patience.lasts()) return false;
  }
  return control.engine_failed.load() == 0;
}

}  // namespace blockyard::record
