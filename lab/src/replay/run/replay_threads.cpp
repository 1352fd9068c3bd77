#include "replay/run/replay_threads.hpp"

#include <sched.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>

#include "clock/clock.hpp"
#include "replay/run/blocks.hpp"
#include "replay/run/cores.hpp"
#include "replay/run/crash.hpp"
#include "replay/run/drive.hpp"
#include "replay/run/failure.hpp"
#include "replay/run/lab_thread.hpp"
#include "replay/run/pacer.hpp"
#include "replay/run/verify.hpp"

namespace blockyard::replay {

thread_local ReplayThread* current_thread = nullptr;

namespace {

// All threads are awake and spinning by then.
constexpr double clock_lead_ns = 5'000'000;

// Threads that wait for each other while the clock does not run sleep in the kernel.
void await(std::atomic<std::uint32_t>& value, std::uint32_t wanted) {
  for (std::uint32_t now = value.load(std::memory_order_acquire); now != wanted;
       now = value.load(std::memory_order_acquire)) {
    value.wait(now, std::memory_order_acquire);
  }
}

void announce(std::atomic<std::uint32_t>& value, std::uint32_t to) {
  value.store(to, std::memory_order_release);
  value.notify_all();
}

}  // namespace

ReplayThreads::ReplayThreads(Session& session, const PlanFile& plan, RunMemory& memory)
    : session_(session), plan_(plan), memory_(memory), pthreads_(session.threads.size()) {
  for (ReplayThread& thread : session.threads) runs_.push_back({this, &thread});
}

void ReplayThreads::prepare(ReplayThread& thread) {
  if (thread.index != 0) await(thread.turn, 1);
  current_thread = &thread;
  thread.kernel_id = gettid();
  if (session_.board != nullptr) {
    thread.mark = &session_.board->marks[thread.index];
    thread.mark->journal_thread.store(thread.journal_thread, std::memory_order_relaxed);
    thread.mark->kernel_id.store(static_cast<std::uint32_t>(thread.kernel_id), std::memory_order_release);
  }
  use_signal_stack(thread.signal_stack, thread.signal_stack_bytes);
  sleep_precisely();
  thread.cause_reader.open(session_.causes);
  const std::uint64_t begin = clock::ticks_fenced();
  if (const Marked marked(thread.mark); session_.adapter->thread_start != nullptr) session_.adapter->thread_start();
  thread.start_ticks = clock::ticks_fenced() - begin;
  // Many allocators make a thread's cache when the thread first allocates: the first block's restoring counts too.
  bool first = true;
  plan_.for_each_preamble(thread.index, [&](const Op& op) {
    const std::uint64_t before = clock::ticks_fenced();
    restore_block(session_, thread, op);
    if (first) thread.start_ticks += clock::ticks_fenced() - before;
    first = false;
  });
  thread.progress.done.store(0, std::memory_order_relaxed);
  stay_on(thread.core);  // threads that the allocator has started by now are not bound to the core
  const std::size_t next = std::size_t{thread.index} + 1;
  announce(next < session_.threads.size() ? session_.threads[next].turn : session_.restored, 1);
}

void ReplayThreads::follow(ReplayThread& thread) {
  session_.verify ? drive_and_verify(session_, thread) : drive(session_, thread);
  leave(thread.core);
  session_.finished.fetch_add(1, std::memory_order_release);
  session_.finished.notify_all();
}

void ReplayThreads::clear_up(ReplayThread& thread) {
  if (thread.index != 0) await(thread.turn, 2);
  // From here to the thread's end: its thread-local destructors belong to the allocator too.
  if (thread.mark != nullptr) thread.mark->doing.store(Mark::outside, std::memory_order_release);
  for (std::uint32_t slot = thread.chain; slot != none;) {
    Slot& left = session_.slots[slot];
    slot = left.done.load(std::memory_order_relaxed);
    release_block(session_, left);
  }
  const std::uint64_t begin = clock::ticks_fenced();
  if (session_.adapter->thread_stop != nullptr) session_.adapter->thread_stop();
  thread.stop_ticks = clock::ticks_fenced() - begin;
  if (thread.mark != nullptr && thread.index == 0) thread.mark->doing.store(Mark::lab, std::memory_order_release);
}

// All steps of a thread other than the main one.
void* ReplayThreads::run(void* run) {
  auto& [all, thread] = *static_cast<ThreadRun*>(run);
  all->prepare(*thread);
  await(all->session_.go, 1);
  all->follow(*thread);
  all->clear_up(*thread);
  current_thread = nullptr;
  thread->left_ticks = clock::ticks();
  return nullptr;
}

void ReplayThreads::start() {
  session_.phase.store(Phase::restoring, std::memory_order_release);
  for (std::size_t index = 1; index < runs_.size(); ++index) {
    const int failed = create_thread(pthreads_[index], memory_.stack(index), run, &runs_[index]);
    if (failed != 0) {
      SafeText reason;
      reason << "the system refuses thread " << std::uint64_t{index + 1} << " of " << std::uint64_t{runs_.size()}
             << " (" << std::strerror(failed) << "); raise the limit, or replay with --threads one";
      fail_run(reason);
    }
  }
  prepare(session_.threads[0]);
  await(session_.restored, 1);
}

void ReplayThreads::replay() {
  session_.clock_start = clock::ticks() + session_.ticks(clock_lead_ns);
  session_.phase.store(Phase::running, std::memory_order_release);
  announce(session_.go, 1);
  follow(session_.threads[0]);
  await(session_.finished, static_cast<std::uint32_t>(runs_.size()));
}

void ReplayThreads::clear_up() {
  clear_up(session_.threads[0]);
  for (std::size_t index = 1; index < runs_.size(); ++index) {
    announce(session_.threads[index].turn, 2);
    await_end(index);
  }
}

// Stays awake meanwhile: the time that a wake-up takes must not be mixed with what the allocator does when a thread
// ends (its thread-local destructors).
void ReplayThreads::await_end(std::size_t index) {
  while (pthread_tryjoin_np(pthreads_[index], nullptr) == EBUSY) sched_yield();
  ReplayThread& thread = session_.threads[index];
  thread.stop_ticks += clock::ticks() - thread.left_ticks;
}

}  // namespace blockyard::replay
