// The thread that reads a journal while it is replayed, ahead of the pace, and writes what was measured behind it.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>

#include "replay/results/sample_writer.hpp"
#include "replay/run/lab_thread.hpp"
#include "replay/run/records.hpp"
#include "replay/run/session.hpp"

namespace blockyard::replay {

/// For a run whose Records are streamed. One thread of the lowest priority that still gets its turn (SCHED_BATCH, nice
/// 19), so that it never preempts a measured one; it sleeps while every ring is at least half full. It takes nothing
/// from the heap and maps nothing while the clock runs: its system calls are reads, writes and sleeps.
///
/// A plan that turns out damaged or a disk that is full ends the process with status 1 and a sentence.
class Stream {
 public:
  /// `samples` is null for a run without samples. The records are filled already. All must outlive the stream.
  Stream(Session& session, Records& records, SampleWriter* samples, std::string folder);
  ~Stream();
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  /// Begins the thread, which waits for the clock. Before the allocator gets its first call.
  void start();
  /// Returns when nothing is left to read and all that is over has been written. Once every replay thread is through.
  void finish();
  /// CPU time of the thread so far.
  [[nodiscard]] std::uint64_t cpu_ns() const { return thread_.cpu_ns(); }

 private:
  static void run(void* self);
  void loop();
  bool step();

  Session& session_;
  Records& records_;
  SampleWriter* samples_;
  std::string folder_;
  std::atomic<bool> last_step_{false};
  LabThread thread_;
};

}  // namespace blockyard::replay
