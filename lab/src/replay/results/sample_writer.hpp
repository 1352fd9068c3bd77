// Merges the threads' finished records into the rows of samples.npy, in the order of the journal.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "replay/plan/plan_file.hpp"
#include "replay/results/atomic_file.hpp"
#include "replay/results/lateness.hpp"
#include "replay/results/record_writer.hpp"
#include "replay/run/session.hpp"

namespace blockyard::replay {

/// Totals of the rows.
struct SampleTotals {
  std::uint64_t events = 0;
  std::uint64_t call_ticks = 0;        ///< of all calls, the timer's floor included
  std::uint64_t touch_ticks = 0;       ///< of all touches, the timer's floor included
  std::uint64_t touched = 0;           ///< events with a touch
  std::uint64_t order_inversions = 0;  ///< events that began before one that precedes them in the journal
  std::uint64_t frame_ends = 0;        ///< of a plan with routes
  std::uint64_t frame_end_ticks = 0;   ///< of all of those, the timer's floor included
};

/// Works while the threads follow their records, and after. Takes its memory when it is constructed (about 1 MiB, and
/// 32 bytes per thread); later members take none. One thread at a time.
class SampleWriter : public RecordWriter {
 public:
  /// Begins `folder`/samples.npy, and frame_ends.npy for a plan that ends frames. Every thread's first records must be
  /// in place. Throws journal::Error.
  SampleWriter(const std::string& folder, const PlanFile& plan, const Session& session);

  /// Writes at most `most` rows, up to the first event in the journal's order that is not over. Returns how many
  /// records it passed. Throws journal::Error when the disk is full.
  std::uint64_t advance(std::uint64_t most) override;

  /// So many of the thread's records have been written and are no longer needed.
  [[nodiscard]] std::uint64_t written(std::size_t thread) const override { return cursors_[thread].next; }

  /// Call it when all threads have finished. Writes the rest and gives the file its name. Returns how late events were
  /// against the journal's clock (empty at `--pace max`).
  LatenessHistogram finish();

  /// After finish().
  [[nodiscard]] const SampleTotals& totals() const { return totals_; }
  /// Threads with more than one event in a hundred that began more than 1 ms late; none at `--pace max`.
  [[nodiscard]] std::uint64_t interrupted_threads() const;

 private:
  struct Cursor {
    const ReplayThread* thread;
    std::uint64_t next = 0;     ///< record
    std::uint64_t plan_ns = 0;  ///< when its predecessor was due
    std::uint64_t events = 0;
    std::uint64_t late = 0;  ///< events later than lost_pace_ns
  };
  static constexpr std::uint64_t lost_pace_ns = 1'000'000;
  using Next = std::pair<std::uint32_t, std::uint32_t>;  ///< event, cursor

  void write(Cursor& cursor);
  void write_special(Cursor& cursor, const Record& record);
  void enqueue(std::uint32_t index);

  const Session& session_;
  std::span<const std::uint32_t> frames_;
  std::size_t frame_ = 0;
  AtomicFile file_;
  std::optional<AtomicFile> frame_ends_;
  std::vector<Cursor> cursors_;
  std::vector<Next> queue_;  ///< a heap, the earliest event first, without the threads all of whose records are written
  LatenessHistogram lateness_;
  SampleTotals totals_;
  std::uint64_t latest_start_ = 0;  ///< ticks; of the rows so far
};

}  // namespace blockyard::replay
