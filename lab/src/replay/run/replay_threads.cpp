#include "replay/run/replay_threads.hpp"

#include <sched.h>

#include <cerrno>
#include <cstring>

#include "base/clock.hpp"
#include "replay/run/failure.hpp"
#include "replay/run/handshake.hpp"
#include "replay/run/lab_thread.hpp"

namespace blockyard::replay {
namespace {

// All threads are awake and spinning by then.
constexpr double clock_lead_ns = 5'000'000;

}  // namespace

ReplayThreads::ReplayThreads(Session& session, const PlanFile& plan, RunMemory& memory)
    : session_(session), memory_(memory), pthreads_(session.threads.size()) {
  runners_.reserve(session.threads.size());
  for (ReplayThread& thread : session.threads) runners_.emplace_back(session, plan, thread);
}

void* ReplayThreads::run(void* runner) {
  static_cast<ThreadRunner*>(runner)->run();
  return nullptr;
}

void ReplayThreads::start() {
  session_.phase.store(Phase::restoring, std::memory_order_release);
  for (std::size_t index = 1; index < runners_.size(); ++index) {
    const int failed = create_thread(pthreads_[index], memory_.stack(index), run, &runners_[index]);
    if (failed != 0) {
      SafeText reason;
      reason << "the system refuses thread " << std::uint64_t{index + 1} << " of " << std::uint64_t{runners_.size()}
             << " (" << std::strerror(failed) << "); raise the limit, or replay with --threads one";
      fail_run(reason);
    }
  }
  runners_[0].prepare();
  await(session_.restored, 1);
}

void ReplayThreads::replay() {
  session_.clock_start = base::ticks() + session_.ticks(clock_lead_ns);
  session_.phase.store(Phase::running, std::memory_order_release);
  announce(session_.go, 1);
  runners_[0].replay();
  await(session_.finished, static_cast<std::uint32_t>(runners_.size()));
}

void ReplayThreads::clear_up() {
  runners_[0].clear_up();
  for (std::size_t index = 1; index < runners_.size(); ++index) {
    announce(session_.threads[index].turn, 2);
    await_end(index);
  }
}

// Stays awake meanwhile: the time that a wake-up takes must not be mixed with what the allocator does when a thread
// ends (its thread-local destructors).
void ReplayThreads::await_end(std::size_t index) {
  while (pthread_tryjoin_np(pthreads_[index], nullptr) == EBUSY) sched_yield();
  ReplayThread& thread = session_.threads[index];
  thread.stop_ticks += base::ticks() - thread.left_ticks;
}

}  // namespace blockyard::replay
