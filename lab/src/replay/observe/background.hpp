// The threads that an allocator starts for itself: their names, their processor time.
#pragma once

#include <sys/types.h>

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "replay/run/session.hpp"

namespace blockyard::replay {

/// Every thread of the process that is not the lab's. Up to 64 of them are followed; further ones are only counted.
/// update() is called by one thread at a time, allocates nothing, and disturbs no measured thread: it asks the kernel
/// about background threads only.
class Background {
 public:
  /// The threads that exist now are the lab's. Call it before the allocator is loaded.
  void remember_lab();

  /// The clock starts: processor time counts from here.
  void start_clock(const Session& session);

  /// Finds new threads and asks the kernel for each thread's time. Takes about 2 us, or 50 us when threads came or
  /// went. Returns the processor time of all since the clock's start, in ns; a thread that has ended counts with what
  /// it had at the last update.
  std::uint64_t update(const Session& session);

  /// Some of them have not ended.
  [[nodiscard]] bool alive() const;
  /// How many were seen so far.
  [[nodiscard]] std::uint64_t threads() const { return count_ + uncounted_; }
  /// Their names in the kernel, sorted, without repetition. Allocates.
  [[nodiscard]] std::vector<std::string> names() const;

 private:
  struct Thread {
    pid_t id;
    bool alive;
    std::uint64_t cpu_ns;       ///< at the last update
    std::uint64_t clock_ns;     ///< the part of it before the clock's start
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
