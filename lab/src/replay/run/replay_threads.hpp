// The threads of one run, from their start to their end.
#pragma once

#include <pthread.h>

#include <vector>

#include "replay/plan/plan_file.hpp"
#include "replay/run/run_memory.hpp"
#include "replay/run/session.hpp"
#include "replay/run/thread_runner.hpp"

namespace blockyard::replay {

/// The calling thread is the journal's first. Takes all its memory when constructed, before the allocator gets its
/// first call.
class ReplayThreads {
 public:
  ReplayThreads(Session& session, const PlanFile& plan, RunMemory& memory);

  /// Starts all threads and has them restore the preamble. Ends the run when the system refuses a thread.
  void start();
  /// Starts the clock. Returns when all threads have followed their records to the end.
  void replay();
  /// Has each thread free the blocks that are left, and waits for its end.
  void clear_up();

 private:
  static void* run(void* runner);
  void await_end(std::size_t index);

  Session& session_;
  RunMemory& memory_;
  std::vector<ThreadRunner> runners_;
  std::vector<pthread_t> pthreads_;
};

}  // namespace blockyard::replay
