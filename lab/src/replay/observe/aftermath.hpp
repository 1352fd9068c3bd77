// What an allocator still does when the program no longer needs it.
#pragma once

#include <cstdint>

#include "replay/observe/background.hpp"
#include "replay/run/session.hpp"

namespace blockyard::replay {

/// What happened after every block had been freed and every thread of the replay had ended.
struct Aftermath {
  std::uint64_t cpu_ns = 0;  ///< of threads that the allocator started
  std::uint64_t minor_faults = 0;
  std::uint64_t resident_bytes = 0;    ///< of the process, when nothing happened any more
  std::uint64_t settled_after_ns = 0;  ///< when that began
};

/// Waits until the allocator's own threads have been idle for 50 ms, for 1 s at most. Returns at once when it has none.
Aftermath observe_aftermath(const Session& session, Background& background);

}  // namespace blockyard::replay
