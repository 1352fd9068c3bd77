// The thread that reads a journal ahead of the replay, and writes behind it what was measured.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>

#include "replay/results/record_writer.hpp"
#include "replay/run/lab_thread.hpp"
#include "replay/run/records.hpp"
#include "replay/run/session.hpp"

namespace blockyard::replay {

/// For a run whose Records are streamed. A LabThread, which never preempts a measured thread; it sleeps while every
/// ring is at least half full. It takes nothing from the heap and maps nothing while the clock runs: its system calls
/// are reads, writes and sleeps.
///
/// A damaged plan or a full disk ends the process with status 1 and a sentence.
class Stream {
 public:
  /// `writer` is null for a run without rows. The records are filled already. All of them must outlive the stream.
  Stream(Session& session, Records& records, RecordWriter* writer, std::string folder);
  ~Stream();
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  /// Starts the thread, which waits for the clock. Call it before the allocator gets its first call.
  void start();
  /// Call it when all replay threads have followed their records. Returns when everything is read and written.
  void finish();
  /// CPU time of the thread so far.
  [[nodiscard]] std::uint64_t cpu_ns() const { return thread_.cpu_ns(); }

 private:
  static void run(void* self);
  void loop();
  bool step();

  Session& session_;
  Records& records_;
  RecordWriter* writer_;
  std::string folder_;
  std::atomic<bool> last_step_{false};
  LabThread thread_;
};

}  // namespace blockyard::replay
