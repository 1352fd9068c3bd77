// Between events a program works, and its data push the allocator's data out of the caches. A replay does no work, so
// its allocator's data stay warmer than in the program. With --pollute, the replay walks memory between events.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "clock/clock.hpp"

namespace blockyard::replay {

/// Each thread has one. The memory is shared, only read, and populated beforehand. After each event, outside its
/// timing, the thread reads one byte of each cache line, starting where it stopped the last time, until it has gone
/// round once. It stops early when the next event is due, because the pace comes first; in a burst a program does no
/// more between two events either. `complete` counts the `walks` that went all the way.
class Polluter {
 public:
  Polluter() = default;
  Polluter(std::span<const char> memory, std::uint64_t margin_ticks) : memory_(memory), margin_(margin_ticks) {}

  [[nodiscard]] bool wanted() const { return !memory_.empty(); }

  /// Walks, and returns shortly before `due` (ticks) if the memory takes longer than that. Returns whether there was
  /// time for any of it.
  bool walk(std::uint64_t due) {
    ++walks_;
    std::uint64_t now = clock::ticks();
    for (std::size_t walked = 0; walked < memory_.size(); walked += piece_bytes) {
      if (now + slowest_ + margin_ > due) return walked != 0;
      const char* const piece = memory_.data() + at_;
      for (std::size_t line = 0; line < piece_bytes; line += line_bytes)
        *static_cast<const volatile char*>(piece + line);
      at_ = at_ + piece_bytes < memory_.size() ? at_ + piece_bytes : 0;
      const std::uint64_t then = clock::ticks();
      // The slowest recent one decays, so that one interruption does not stop all later walks.
      slowest_ = then - now > slowest_ ? then - now : slowest_ - slowest_ / 64;
      now = then;
    }
    ++complete_;
    return true;
  }

  [[nodiscard]] std::uint64_t walks() const { return walks_; }
  [[nodiscard]] std::uint64_t complete() const { return complete_; }

  /// The memory's size is a multiple of it. Reading one takes half a microsecond when it comes from memory.
  static constexpr std::size_t piece_bytes = 4096;

 private:
  static constexpr std::size_t line_bytes = 64;

  std::span<const char> memory_;
  std::uint64_t margin_ = 0;
  std::uint64_t slowest_ = 0;  ///< ticks that a piece takes
  std::size_t at_ = 0;
  std::uint64_t walks_ = 0;
  std::uint64_t complete_ = 0;
};

}  // namespace blockyard::replay
