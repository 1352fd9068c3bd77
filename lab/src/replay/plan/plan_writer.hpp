// Writes a plan file: takes ops of all threads in any order and writes chunks of one thread each.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "replay/plan/plan_format.hpp"
#include "replay/results/atomic_file.hpp"

namespace blockyard::replay {

/// Holds one chunk (96 KiB) per thread in memory, however long the journal is. Throws journal::Error when the disk is
/// full.
class PlanWriter {
 public:
  explicit PlanWriter(const std::string& path);

  /// Appends to the ops of a journal thread. O(1), with a write of 96 KiB once in 4096 calls.
  void add(std::uint32_t journal_thread, const Op& op) {
    Thread& thread = of(journal_thread);
    if (thread.buffered == chunk_ops) flush(thread);
    thread.ops[thread.buffered++] = op;
  }

  /// The thread's blocks that are restored before the clock starts. Call it at most once per thread.
  void add_preamble(std::uint32_t journal_thread, const std::vector<Op>& ops);

  /// Completes the file. Fills in the header's offsets, hashes, chunks, threads and marks; the rest comes from the
  /// caller, as do the bytes of the tables of routes.
  void finish(PlanHeader& header, const std::vector<std::uint32_t>& frame_events,
              const std::vector<std::uint32_t>& phase_events, const std::string& route_tables = "");

  /// After finish(): threads that have nothing but a preamble.
  [[nodiscard]] std::uint32_t idle_threads() const { return idle_threads_; }

 private:
  struct Thread {
    std::unique_ptr<Op[]> ops;
    std::size_t buffered = 0;
    bool used = false;
    PlanThread entry{};
    std::vector<PlanChunk> chunks;
  };

  Thread& of(std::uint32_t journal_thread) {
    if (journal_thread < threads_.size() && threads_[journal_thread].ops) return threads_[journal_thread];
    return open(journal_thread);
  }
  Thread& open(std::uint32_t journal_thread);
  void flush(Thread& thread);

  AtomicFile file_;
  std::vector<Thread> threads_;
  std::uint32_t idle_threads_ = 0;
};

}  // namespace blockyard::replay
