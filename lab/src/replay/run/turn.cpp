#include "replay/run/turn.hpp"

namespace blockyard::replay {

std::uint64_t await_records(ReplayThread& thread, std::uint64_t next) {
  std::uint64_t published = thread.published.load(std::memory_order_acquire);
  if (published != next || next == thread.count) return published;
  const std::uint64_t begin = clock::ticks();
  while ((published = thread.published.load(std::memory_order_acquire)) == next) sleep_shortly();
  ++thread.outruns;
  thread.outrun_ticks += clock::ticks() - begin;
  return published;
}

void wait_for_event(const Slot& slot, std::uint32_t event, double ticks_per_ns) {
  // The other thread may need this core: spin no longer than it takes when both run.
  const std::uint64_t patience = clock::ticks() + static_cast<std::uint64_t>(sleep_lead_ns * ticks_per_ns);
  while (slot.done.load(std::memory_order_acquire) != event) {
    if (clock::ticks() < patience) {
      relax();
    } else {
      sleep_shortly();
    }
  }
}

}  // namespace blockyard::replay
