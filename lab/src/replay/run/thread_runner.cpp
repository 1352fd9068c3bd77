#include "replay/run/thread_runner.hpp"

#include <unistd.h>

#include "base/clock.hpp"
#include "replay/run/blocks.hpp"
#include "replay/run/cores.hpp"
#include "replay/run/crash.hpp"
#include "replay/run/drive.hpp"
#include "replay/run/drive_rerouted.hpp"
#include "replay/run/handshake.hpp"
#include "replay/run/pacer.hpp"
#include "replay/run/verify.hpp"

namespace blockyard::replay {

thread_local ReplayThread* current_thread = nullptr;

void ThreadRunner::prepare() {
  if (thread_.index != 0) await(thread_.turn, 1);
  current_thread = &thread_;
  thread_.kernel_id = gettid();
  if (session_.board != nullptr) {
    thread_.mark = &session_.board->marks[thread_.index];
    thread_.mark->journal_thread.store(thread_.journal_thread, std::memory_order_relaxed);
    thread_.mark->kernel_id.store(static_cast<std::uint32_t>(thread_.kernel_id), std::memory_order_release);
  }
  use_signal_stack(thread_.signal_stack, thread_.signal_stack_bytes);
  sleep_precisely();
  thread_.cause_reader.open(session_.causes);
  const std::uint64_t begin = base::ticks_fenced();
  if (const Marked marked(thread_.mark); session_.adapter->thread_start != nullptr) session_.adapter->thread_start();
  thread_.start_ticks = base::ticks_fenced() - begin;
  // Many allocators make a thread's cache when the thread first allocates: the first block's restoring counts too.
  bool first = true;
  plan_.for_each_preamble(thread_.index, [this, &first](const Op& op) {
    const std::uint64_t before = base::ticks_fenced();
    restore_block(session_, thread_, op);
    if (first) thread_.start_ticks += base::ticks_fenced() - before;
    first = false;
  });
  thread_.progress.done.store(0, std::memory_order_relaxed);
  stay_on(thread_.core);  // threads that the allocator has started by now are not bound to the core
  const std::size_t next = std::size_t{thread_.index} + 1;
  announce(next < session_.threads.size() ? session_.threads[next].turn : session_.restored, 1);
}

void ThreadRunner::replay() {
  if (session_.verify) {
    drive_and_verify(session_, thread_);
  } else if (session_.rerouting != nullptr) {
    drive_rerouted(session_, thread_);
  } else {
    drive(session_, thread_);
  }
  leave(thread_.core);
  session_.finished.fetch_add(1, std::memory_order_release);
  session_.finished.notify_all();
}

void ThreadRunner::clear_up() {
  if (thread_.index != 0) await(thread_.turn, 2);
  // From here to the thread's end: its thread-local destructors belong to the allocator too.
  if (thread_.mark != nullptr) thread_.mark->doing.store(Mark::outside, std::memory_order_release);
  for (std::uint32_t slot = thread_.chain; slot != none;) {
    Slot& left = session_.slots[slot];
    slot = left.done.load(std::memory_order_relaxed);
    release_block(session_, left);
  }
  const std::uint64_t begin = base::ticks_fenced();
  if (session_.adapter->thread_stop != nullptr) session_.adapter->thread_stop();
  thread_.stop_ticks = base::ticks_fenced() - begin;
  if (thread_.mark != nullptr && thread_.index == 0) thread_.mark->doing.store(Mark::lab, std::memory_order_release);
}

void ThreadRunner::run() {
  prepare();
  await(session_.go, 1);
  replay();
  clear_up();
  current_thread = nullptr;
  thread_.left_ticks = base::ticks();
}

}  // namespace blockyard::replay
