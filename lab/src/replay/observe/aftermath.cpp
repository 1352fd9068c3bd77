#include "replay/observe/aftermath.hpp"

#include <ctime>

#include "base/clock.hpp"
#include "replay/observe/usage.hpp"
#include "replay/run/process_memory.hpp"

namespace blockyard::replay {
namespace {

constexpr std::uint64_t quiet_ns = 50'000'000;
constexpr std::uint64_t longest_ns = 1'000'000'000;
// Between two checks. A thread that uses no more than that only checks whether it has work.
constexpr std::uint64_t idle_cpu_ns = 50'000;
constexpr timespec rest{0, 5'000'000};

}  // namespace

Aftermath observe_aftermath(const Session& session, Background& background) {
  const std::uint64_t begin = base::ticks();
  const Work before = work_now();
  const std::uint64_t cpu_before = background.update(session);
  std::uint64_t cpu = cpu_before;
  std::uint64_t resident = resident_bytes();
  std::uint64_t active_ns = 0;
  while (background.alive()) {
    nanosleep(&rest, nullptr);
    const std::uint64_t now_ns = session.ns(base::ticks() - begin);
    const std::uint64_t cpu_now = background.update(session);
    const std::uint64_t resident_now = resident_bytes();
    if (cpu_now - cpu > idle_cpu_ns || resident_now != resident) active_ns = now_ns;
    cpu = cpu_now;
    resident = resident_now;
    if (now_ns - active_ns >= quiet_ns || now_ns >= longest_ns) break;
  }
  return {.cpu_ns = cpu - cpu_before,
          .minor_faults = work_now().minor_faults - before.minor_faults,
          .resident_bytes = resident,
          .settled_after_ns = active_ns};
}

}  // namespace blockyard::replay
