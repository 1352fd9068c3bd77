// What one journal thread does, from its start to its end.
#pragma once

#include "replay/plan/plan_file.hpp"
#include "replay/run/session.hpp"

namespace blockyard::replay {

/// The journal's first thread is the process's main thread, as in the program: some allocators treat it differently
/// (glibc's main arena). Each step waits for its turn.
class ThreadRunner {
 public:
  ThreadRunner(Session& session, const PlanFile& plan, ReplayThread& thread)
      : session_(session), plan_(plan), thread_(thread) {}

  /// Starts the allocator's thread and restores the preamble. Threads do so one after another, so that every run has
  /// the same layout.
  void prepare();
  /// Follows the thread's events.
  void replay();
  /// Frees the thread's blocks that are left, and stops the allocator's thread. The journal does not say when a thread
  /// ended, so all of them live until the clock has stopped.
  void clear_up();

  /// All steps, for a thread other than the main one.
  void run();

 private:
  Session& session_;
  const PlanFile& plan_;
  ReplayThread& thread_;
};

}  // namespace blockyard::replay
