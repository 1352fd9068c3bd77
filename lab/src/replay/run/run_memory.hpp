// The run's own data, populated before the allocator gets its first call.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "replay/plan/plan_file.hpp"
#include "replay/run/process_memory.hpp"
#include "replay/run/records.hpp"
#include "replay/run/run.hpp"
#include "replay/run/session.hpp"

namespace blockyard::replay {

/// Records, slots, stacks and what threads walk between events: mapped and populated when constructed, and put into the
/// session. Throws journal::Error when the system does not have that much.
class RunMemory {
 public:
  RunMemory(const PlanFile& plan, Session& session, const RunSettings& settings);

  ReplayThread& thread(std::size_t index) { return threads_[index]; }
  Stack& stack(std::size_t index) { return stacks_[index - 1]; }
  Records& records() { return records_; }
  /// What threads walk between events; empty without --pollute.
  [[nodiscard]] std::span<const char> polluted() const { return {polluted_memory_.begin(), polluted_memory_.size()}; }

 private:
  PopulatedMemory thread_memory_;
  PopulatedMemory slot_memory_;
  PopulatedMemory signal_memory_;
  PopulatedMemory polluted_memory_;
  Records records_;
  ReplayThread* threads_ = nullptr;
  std::vector<Stack> stacks_;
};

}  // namespace blockyard::replay
