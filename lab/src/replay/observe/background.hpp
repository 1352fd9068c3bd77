// The threads that an allocator starts for itself: what they are called, what processor time they take.
#pragma once

#include <sys/types.h>

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "replay/run/session.hpp"

namespace blockyard::replay {

/// Every thread of the process that is not the lab's. Up to 64 of them are told apart; further ones are only counted.
/// update() is called by one thread at a time, allocates nothing, and disturbs no measured thread: it asks the kernel
/// about the background's threads alone.
class Background {
 public:
  /// The threads that exist now are the lab's. Before the allocator is loaded.
  void remember_lab();

  /// The clock starts: processor time counts from here.
  void start_clock(const Session& session);

  /// Looks for new threads and asks each for its time. About 2 us, and 50 us when threads came or went. Returns the
  /// processor time of all since the clock's start, in ns; one that has ended counts with what it had when last asked.
  std::uint64_t update(const Session& session);

  /// Some of them are running or asleep.
  [[nodiscard]] bool alive() const;
  /// Seen so far.
  [[nodiscard]] std::uint64_t threads() const { return count_ + uncounted_; }
  /// Their names as the kernel has them, each once, sorted. Allocates.
  [[nodiscard]] std::vector<std::string> names() const;

 private:
  struct Thread {
    pid_t id;
    bool alive;
    std::uint64_t cpu_ns;       ///< when last asked
    std::uint64_t clock_ns;     ///< of it, before the clock's start
    std::array<char, 16> name;  ///< ends with a zero, as the kernel's names do
  };

  void scan(const Session& session);
  void add(pid_t id);
  [[nodiscard]] bool is_labs(const Session& session, pid_t id) const;

  std::array<pid_t, 8> lab_{};
  std::size_t lab_count_ = 0;
  std::array<Thread, 64> threads_{};
  std::size_t count_ = 0;
  std::uint64_t uncounted_ = 0;
  std::uint64_t links_ = 0;  ///< of the folder of threads when it was last read
};

}  // namespace blockyard::replay
