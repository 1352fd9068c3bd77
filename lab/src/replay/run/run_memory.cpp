#include "replay/run/run_memory.hpp"

#include <new>

#include "replay/run/crash.hpp"

namespace blockyard::replay {
namespace {

constexpr std::size_t thread_stack_bytes = std::size_t{2} << 20;
// Enough for glibc's thread data (with 20 kB of static TLS for late-loaded allocators) and an allocator's call depth.
constexpr std::size_t thread_stack_populated = std::size_t{128} << 10;

}  // namespace

RunMemory::RunMemory(const PlanFile& plan, Session& session, const RunSettings& settings)
    : thread_memory_(plan.threads().size() * sizeof(ReplayThread)),
      slot_memory_(std::size_t{plan.header().slots} * sizeof(Slot)),
      signal_memory_(plan.threads().size() * signal_stack_bytes),
      records_(plan, static_cast<std::uint64_t>(settings.stream_above_mib * (1 << 20))) {
  // Ordinary pages: a program's data are not in huge pages either, and the allocator's TLB entries get cold too.
  if (settings.pollute_bytes != 0)
    polluted_memory_ = PopulatedMemory(settings.pollute_bytes, PopulatedMemory::Pages::ordinary);
  static_assert(Polluter::piece_bytes == 4096, "a page: the memory is a multiple of it");
  threads_ = reinterpret_cast<ReplayThread*>(thread_memory_.begin());
  for (std::size_t index = 0; index < plan.threads().size(); ++index) {
    ReplayThread* thread = new (&threads_[index]) ReplayThread;
    thread->index = static_cast<std::uint32_t>(index);
    thread->journal_thread = plan.threads()[index].journal_thread;
    thread->signal_stack = signal_memory_.begin() + index * signal_stack_bytes;
    thread->signal_stack_bytes = signal_stack_bytes;
    if (index != 0) stacks_.emplace_back(thread_stack_bytes, thread_stack_populated);
  }
  session.threads = {threads_, plan.threads().size()};
  records_.attach(session.threads);
  for (ReplayThread& thread : session.threads) records_.fill(thread, 0);
  session.slots = reinterpret_cast<Slot*>(slot_memory_.begin());
  for (std::uint32_t slot = 0; slot < plan.header().slots; ++slot) {
    new (&session.slots[slot])
        Slot{.block = nullptr, .size = 0, .done = none, .giver = 0, .alignment_log2 = 0, .fresh = false};
  }
}

}  // namespace blockyard::replay
