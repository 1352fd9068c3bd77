#include "base/background_work.hpp"

#include "base/pages.hpp"
#include "base/process.hpp"

namespace blockyard::base {

namespace {

constinit BackgroundWork* first = nullptr;
constinit Atomic<int> held_off{0};              // calls for which there must be none
constinit Atomic<int> process{0};               // whose threads they are
constinit Atomic<std::uint64_t> not_before{0};  // ns
constinit Atomic<bool> in_sandbox{false};
constinit Atomic<int> vfork_child{0};   // the last that entered a sandbox
constinit bool ended_for_fork = false;  // one fork at a time, under the C library's lock or on the only thread

}  // namespace

void BackgroundWork::allow() {
  if (process.exchange(process_id(), std::memory_order_relaxed) == 0) {
    around_every_fork(before_fork, after_fork_in_parent, after_fork_in_child);
  }
  next_ = first;
  first = this;
}

BackgroundWork::Start BackgroundWork::start(bool (*prepare)(), std::initializer_list<const void*> variables) {
  if (is_in_sandbox()) {
    return Start::not_now;  // before any system call
  }
  if (const std::uint64_t from = not_before.load(std::memory_order_relaxed); from != 0 && monotonic_ns() < from) {
    return Start::not_now;
  }
  // A handler may fork, and would wait for what it interrupted.
  const NoSignals none;
  if (starting_.exchange(true, std::memory_order_seq_cst)) {
    return Start::not_now;
  }
  Start result = Start::not_now;
  // A vfork child's would end with it, and the parent would have none.
  if (held_off.load(std::memory_order_seq_cst) == 0 && is_over() &&
      process_id() == process.load(std::memory_order_relaxed) && prepare()) {
    told_to_end_.store(0, std::memory_order_relaxed);
    const bool started = thread_.start(functions_.run, functions_.name, variables);
    not_before.store(started ? 0 : monotonic_ns() + 250'000'000, std::memory_order_relaxed);
    result = started ? Start::started : Start::refused;
  }
  starting_.store(false, std::memory_order_release);
  return result;
}

bool BackgroundWork::end_all() {
  constexpr int most_steps = 50'000;
  constexpr std::uint64_t step_ns = 20'000;
  if (process_id() != process.load(std::memory_order_relaxed)) {
    return false;
  }
  held_off.fetch_add(1, std::memory_order_seq_cst);
  const bool alone = is_alone();
  for (BackgroundWork* work = first; work != nullptr; work = work->next_) {
    while (work->starting_.load(std::memory_order_seq_cst)) {
      sleep_for(step_ns);
    }
    for (int step = 0; step < most_steps && !work->thread_.is_gone(); ++step) {
      work->told_to_end_.store(1, std::memory_order_relaxed);
      wake_one(&work->told_to_end_);
      if (!work->functions_.wake() && alone) {
        break;
      }
      sleep_for(step_ns);
    }
  }
  return true;
}

void BackgroundWork::resume_all() {
  constexpr std::uint64_t away_ns = 20'000'000;
  not_before.store(monotonic_ns() + away_ns, std::memory_order_relaxed);
  held_off.fetch_sub(1, std::memory_order_seq_cst);
}

void BackgroundWork::enter_sandbox() {
  if (is_in_sandbox()) {
    return;  // it may not ask for more
  }
  // A vfork child's sandbox is not its parent's, whose memory this is; a child by a bare clone() has a copy. Each child
  // asks once whose memory it has: its first sandbox may forbid the question.
  if (const int owner = process.load(std::memory_order_relaxed); owner != 0) {
    const int self = process_id();
    if (self != owner && (self == vfork_child.load(std::memory_order_relaxed) || shares_memory_with(owner))) {
      vfork_child.store(self, std::memory_order_relaxed);
      return;
    }
  }
  in_sandbox.store(true, std::memory_order_relaxed);
  if (is_alone() && end_all()) {
    resume_all();
  }
}

bool BackgroundWork::is_in_sandbox() { return in_sandbox.load(std::memory_order_relaxed); }

unsigned BackgroundWork::count_running() {
  unsigned running = 0;
  for (BackgroundWork* work = first; work != nullptr; work = work->next_) {
    running += work->thread_.is_gone() ? 0U : 1U;
  }
  return running;
}

// Whether the program has one thread. The system counts the background threads too.
bool BackgroundWork::is_alone() { return is_only_thread() || threads_of_process() == 1 + count_running(); }

void BackgroundWork::before_fork() { ended_for_fork = count_running() != 0 && is_alone() && end_all(); }

void BackgroundWork::after_fork_in_parent() {
  if (ended_for_fork) {
    resume_all();
  }
}

void BackgroundWork::after_fork_in_child() {
  process.store(process_id(), std::memory_order_relaxed);
  held_off.store(0, std::memory_order_relaxed);
  for (BackgroundWork* work = first; work != nullptr; work = work->next_) {
    work->starting_.store(false, std::memory_order_relaxed);
    const bool ran = !work->is_over();
    work->thread_.forget();
    work->functions_.begin_in_child(ran, ran && ended_for_fork);
  }
}

}  // namespace blockyard::base
