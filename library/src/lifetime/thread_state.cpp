#include "lifetime/thread_state.hpp"

#include <algorithm>
#include <mutex>
#include <new>

#include "base/kept_errno.hpp"
#include "lifetime/temp.hpp"

namespace blockyard::lifetime {

constinit thread_local ThreadState* this_thread = nullptr;
BY_DEFINE_THREAD_VARIABLE(JobCursor, by_job_cursor, job_cursor)
constinit base::Mutex rare_lock;

namespace {

constinit threads::Registry<ThreadState> registry;
constinit by_temp_statistics ended{};
constinit std::uint32_t last_number = 0;

// `figures` has the members of by_temp_statistics.
template <class Figures>
void add(by_temp_statistics& total, const Figures& figures) {
  total.frames += figures.frames;
  for (unsigned k = 0; k < BY_PEAK_BUCKETS; ++k) {
    total.frames_by_peak[k] += figures.frames_by_peak[k];
  }
  total.region_bytes = std::max<std::size_t>(total.region_bytes, figures.region_bytes);
  total.peak_bytes = std::max<std::size_t>(total.peak_bytes, figures.peak_bytes);
  total.peak_demand_bytes = std::max<std::size_t>(total.peak_demand_bytes, figures.peak_demand_bytes);
  total.overflow_full += figures.overflow_full;
  total.overflow_too_large += figures.overflow_too_large;
  total.grown += figures.grown;
}

void clear(TempFigures& figures) {
  figures.frames = 0;
  for (auto& frames : figures.frames_by_peak) {
    frames = 0;
  }
  figures.peak_bytes = 0;
  figures.peak_demand_bytes = 0;
  figures.overflow_full = 0;
  figures.overflow_too_large = 0;
  figures.grown = 0;
}

void count_ended(ThreadState* state) {
  add_figures(ended, state->figures);
  clear(state->figures);
  state->number = 0;
}

void become_child_alone() {
  registry.forget_late();
  forget_leaks_in_child();
}

// The states of the parent's other threads stay as they are and are not used again, since this thread may read them.
void become_child() {
  for (ThreadState* state = registry.known(); state != nullptr; state = state->next_known) {
    if (state != this_thread && state->number != 0) {
      count_ended(state);
    }
  }
  become_child_alone();
  rare_lock.unlock();
}

// Frees what the state's thread left. Called by that thread, or by one that has no state yet.
void put_away(ThreadState* state) {
  state->open_cursors = 0;
  state->pinned = 0;
  if (!is_frame_empty(state)) {
    end_temp_frame(state);
  }
  retire_job_chunks(job_cursor());
  retire_job_chunks(state->watched_job);
  temp_region() = {};
  state->watched_temp = {};
}

void leave_thread(void* value) {
  auto* const state = static_cast<ThreadState*>(value);
  put_away(state);
  this_thread = nullptr;
  const std::lock_guard lock(rare_lock);
  count_ended(state);
  registry.park(state);
}

// Before there is a thread that could hold the lock while another forks.
[[gnu::constructor(102)]] void handle_forks() {
  base::around_fork([] { rare_lock.lock(); }, [] { rare_lock.unlock(); }, become_child, become_child_alone);
}

// Before main, where it costs nobody a frame.
[[gnu::constructor]] void prepare_main_thread() { by_lifetime_prepare(); }

}  // namespace

ThreadState* enter_thread() {
  threads::Registry<ThreadState>::Taken taken{};
  {
    const std::lock_guard lock(rare_lock);
    taken = registry.take(leave_thread, [] {
      void* const memory = base::reserve_pages(sizeof(ThreadState));
      return memory != nullptr ? new (memory) ThreadState : nullptr;
    });
    if (taken.state == nullptr) {
      return nullptr;
    }
    if (taken.was_lost) {
      count_ended(taken.state);
    }
    taken.state->number = ++last_number;
    taken.state->frame = (std::uint64_t{last_number} << 40) + 1;
  }
  if (taken.was_lost) {
    put_away(taken.state);
  }
  this_thread = taken.state;
  registry.enter(taken.state, rare_lock);
  return taken.state;
}

bool thread_has_left() { return registry.has_left(); }

ThreadState* ensure_thread(std::size_t alignment) {
  if (!is_valid_alignment(alignment)) {
    return base::failed(EINVAL);
  }
  ThreadState* const state = ensure_thread();
  return state != nullptr ? state : base::failed(ENOMEM);
}

ThreadState* known_threads() { return registry.known(); }

void add_figures(by_temp_statistics& total, const TempFigures& figures) { add(total, figures); }

void add_ended(by_temp_statistics& total) {
  const std::lock_guard lock(rare_lock);
  add(total, ended);
}

}  // namespace blockyard::lifetime
