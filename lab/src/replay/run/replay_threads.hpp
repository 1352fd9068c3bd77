// The threads of one run, from their start to their end.
#pragma once

#include <pthread.h>

#include <vector>

#include "replay/plan/plan_file.hpp"
#include "replay/run/run_memory.hpp"
#include "replay/run/session.hpp"

namespace blockyard::replay {

/// The calling thread is the journal's first, as in the program: some allocators treat the main thread differently
/// (glibc's main arena). Takes all its memory when constructed, before the allocator gets its first call.
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
  struct ThreadRun {
    ReplayThreads* all;
    ReplayThread* thread;
  };

  static void* run(void* run);
  /// Starts the allocator's thread and restores the preamble. Threads do so one after another, so that every run has
  /// the same layout.
  void prepare(ReplayThread& thread);
  void follow(ReplayThread& thread);
  /// Frees the thread's blocks that are left, and stops the allocator's thread. The journal does not say when a thread
  /// ended, so all of them live until the clock has stopped.
  void clear_up(ReplayThread& thread);
  void await_end(std::size_t index);

  Session& session_;
  const PlanFile& plan_;
  RunMemory& memory_;
  std::vector<ThreadRun> runs_;
  std::vector<pthread_t> pthreads_;
};

}  // namespace blockyard::replay
