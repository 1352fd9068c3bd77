// Where replay threads find their records: all of a journal at once, or, when the journal is larger than the memory for
// it, the stretch around what is being replayed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "replay/plan/plan_file.hpp"
#include "replay/run/process_memory.hpp"
#include "replay/run/session.hpp"

namespace blockyard::replay {

/// Owns the records' memory, which is populated when constructed, and fills it from the plan.
///
/// When all records fit into `most_bytes`, each thread's records lie there one after another, and fill() puts all of
/// them in. Otherwise a thread has a ring, sized by its share of the events and then by what is left over. The plan's
/// chunks come in at one end, and records that are no longer needed go out at the other. A ring holds at least two
/// chunks (256 KiB of records), so that many busy threads may take more than `most_bytes`. A thread whose records fit
/// into its share has no ring.
///
/// fill() is called by one thread at a time, which need not be the one that constructed it. It takes nothing from the
/// heap.
class Records {
 public:
  /// Throws journal::Error when the system does not have that much memory.
  Records(const PlanFile& plan, std::uint64_t most_bytes);

  /// Gives each thread of the run its place.
  void attach(std::span<ReplayThread> threads);

  /// Some thread's records are more than its ring holds: fill() must go on while they are followed.
  [[nodiscard]] bool streamed() const { return streamed_; }
  [[nodiscard]] std::uint64_t bytes() const { return memory_.size(); }

  /// Reads more of the thread's records, as far as there is room, and publishes them. Its first `released` records are
  /// no longer needed. Returns how many it read. Throws journal::Error when the plan is damaged.
  std::uint64_t fill(ReplayThread& thread, std::uint64_t released);

  /// Less than half of the thread's ring lies ahead of it, and more records are to come.
  [[nodiscard]] bool runs_low(const ReplayThread& thread) const;

 private:
  struct Ring {
    std::size_t first_record = 0;  ///< in the memory
    std::uint64_t capacity = 0;
    std::uint64_t mask = 0;
    std::uint64_t filled = 0;
    std::size_t next_chunk = 0;  ///< of the plan
    std::size_t end_chunk = 0;
  };

  void grow(std::uint64_t most, std::uint64_t taken);

  const PlanFile& plan_;
  std::vector<Ring> rings_;
  bool streamed_ = false;
  std::unique_ptr<Op[]> chunk_;
  PopulatedMemory memory_;
};

}  // namespace blockyard::replay
