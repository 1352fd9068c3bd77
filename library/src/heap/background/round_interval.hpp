// How long the background thread sleeps between two rounds.
//
// A round costs 10 to 35 us, nearly all of it going to sleep and waking up, so rounds are rare where little is taken:
// the program may take three eighths of what it may take before it would have to wake the background thread, which is a
// system call. Where it ran the reserve that low, the pause is short. When nothing was taken for a while the pause
// doubles up to the longest sleep.
#pragma once

#include <algorithm>
#include <cstdint>

namespace blockyard::heap {

/// What a round of maintenance found.
struct Round {
  bool more_to_do = false;
  std::uint64_t taken = 0;  ///< pages that the program took since the round before
  unsigned spent = 0;       ///< see ReserveTarget::spent
};

class RoundInterval {
 public:
  static constexpr std::uint64_t shortest_ns = 4'000'000;       ///< up to it, the background thread need not be woken
  static constexpr std::uint64_t longest_busy_ns = 16'000'000;  ///< while the program takes memory
  static constexpr std::uint64_t longest_idle_ns = 250'000'000;

  /// Nanoseconds until the next round, at least `period_ns`.
  std::uint64_t next(const Round& round, std::uint64_t period_ns) {
    constexpr unsigned aim_spent = 6;  // sixteenths
    constexpr unsigned all_spent = 16;
    if (round.more_to_do) {
      idle_ns_ = 0;
      return pause_ = period_ns;
    }
    idle_ns_ = round.taken != 0 ? 0 : idle_ns_ + pause_;
    const std::uint64_t longest = idle_ns_ < longest_idle_ns ? longest_busy_ns : longest_idle_ns;
    std::uint64_t pause = std::min(pause_ * 2, pause_ * aim_spent / std::max(round.spent, 1u));
    if (round.spent >= all_spent) {
      pause = std::min(pause, shortest_ns);
    }
    return pause_ = std::clamp(pause, period_ns, std::max(longest, period_ns));
  }

 private:
  std::uint64_t pause_ = 0;
  std::uint64_t idle_ns_ = 0;
};

}  // namespace blockyard::heap
