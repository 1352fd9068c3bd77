// Where replay threads find their records: all of a journal at once, or, of one that is larger than the memory given to
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
/// When all records fit into `most_bytes`, each thread's lie there one after another and fill() puts all of them in.
/// Else a thread has a ring, sized by its share of the events and then by what is left over: the plan's chunks come in at
/// one end, records that nobody needs any more go out at the other. A ring holds at least two chunks (256 KiB of records),
/// so that many busy threads may take more than `most_bytes`; a thread whose records fit into its share is held as a whole.
///
/// fill() is called by one thread at a time, which need not be the one that constructed it. It takes nothing from the
/// heap.
class Records {
 public:
  /// Throws journal::Error when the system has not that much memory.
  Records(const PlanFile& plan, std::uint64_t most_bytes);

  /// Gives each thread of the run its place.
  void attach(std::span<ReplayThread> threads);

  /// Some thread's records are more than its ring holds: fill() has to go on while they are followed.
  [[nodiscard]] bool streamed() const { return streamed_; }
  [[nodiscard]] std::uint64_t bytes() const { return memory_.size(); }

  /// Reads on for the thread, as far as there is room, and publishes what it read. Its first `released` records are
  /// needed no more. Returns how many it read. Throws journal::Error when the plan is damaged.
  std::uint64_t fill(ReplayThread& thread, std::uint64_t released);

  /// Less than half of the thread's ring lies ahead of it, and there is more to come.
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
