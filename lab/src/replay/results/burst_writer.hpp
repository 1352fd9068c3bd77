// Collects the threads' finished bursts into bursts.npy.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "replay/plan/plan_file.hpp"
#include "replay/results/atomic_file.hpp"
#include "replay/results/record_writer.hpp"
#include "replay/run/session.hpp"

namespace blockyard::replay {

/// A row for each burst: thread by thread, or in pieces of a thread's where the journal is streamed.
class BurstWriter : public RecordWriter {
 public:
  /// Begins `folder`/bursts.npy. Throws journal::Error.
  BurstWriter(const std::string& folder, const PlanFile& plan, const Session& session);

  std::uint64_t advance(std::uint64_t most) override;
  [[nodiscard]] std::uint64_t written(std::size_t thread) const override { return cursors_[thread].next; }

  /// Call it when all threads have finished. Writes the rest and gives the file its name.
  void finish();

  /// After finish(): nanoseconds of all bursts.
  [[nodiscard]] std::uint64_t burst_ns() const { return session_.ns(ticks_); }

 private:
  struct Cursor {
    std::uint64_t next = 0;    ///< record
    std::uint32_t events = 0;  ///< of its burst so far
  };

  void pass(Cursor& cursor, const ReplayThread& thread);

  const Session& session_;
  std::span<const std::uint32_t> frames_;
  AtomicFile file_;
  std::vector<Cursor> cursors_;
  std::uint64_t rows_ = 0;
  std::uint64_t ticks_ = 0;
};

}  // namespace blockyard::replay
