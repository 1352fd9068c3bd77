// Asking for the background thread: all that those below it know of it.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/atomic.hpp"
#include "base/background_work.hpp"
#include "base/threads.hpp"
#include "heap/settings.hpp"

namespace blockyard::heap {

enum class BackgroundPhase : std::uint32_t { running, forbidden, wanted_early, absent, due };

class Wakeup {
 public:
  constexpr Wakeup() = default;

  BackgroundPhase phase() const { return phase_.load(std::memory_order_seq_cst); }
  bool is_running() const { return phase_.load(std::memory_order_relaxed) == BackgroundPhase::running; }
  void set_phase(BackgroundPhase phase) { phase_.store(phase, std::memory_order_relaxed); }
  bool move_on(BackgroundPhase from, BackgroundPhase to) {
    return phase_.compare_exchange_strong(from, to, std::memory_order_seq_cst);
  }

  /// Called by a thread that saw the reserve run low. Has the background thread started when there is none, wakes it
  /// when it sleeps long. Cheap otherwise: two loads.
  void wake() {
    if (!is_running()) [[unlikely]] {
      request();
    } else if (asleep_.load(std::memory_order_relaxed) != 0 && asleep_.exchange(0, std::memory_order_relaxed) != 0) {
      base::wake_one(&asleep_);
    }
  }
  /// Likewise, but lets it sleep where there is one: for what can wait until it comes by itself.
  void request() {
    if (settings.janitor != 0 && !base::BackgroundWork::is_in_sandbox() &&
        !move_on(BackgroundPhase::absent, BackgroundPhase::due)) {
      move_on(BackgroundPhase::forbidden, BackgroundPhase::wanted_early);
    }
  }

  /// The thread itself.
  void pause_for(std::uint64_t ns, bool wakeable) {
    const std::uint32_t value = wakeable ? 1 : 0;
    asleep_.store(value, std::memory_order_seq_cst);
    base::sleep_while(&asleep_, value, ns);
    asleep_.store(0, std::memory_order_relaxed);
  }
  void end_sleep() {
    asleep_.store(0, std::memory_order_relaxed);
    base::wake_one(&asleep_);
  }
  void forget_sleep() { asleep_.store(0, std::memory_order_relaxed); }

 private:
  base::Atomic<BackgroundPhase> phase_{BackgroundPhase::forbidden};
  base::Atomic<std::uint32_t> asleep_{0};  // 1 while it sleeps longer than a short pause, and may be woken
};

inline constinit Wakeup background;

}  // namespace blockyard::heap
