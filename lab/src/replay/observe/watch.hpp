// The thread beside the measured ones: it samples memory, shows progress, and ends a run that hangs or is interrupted.
#pragma once

#include <atomic>
#include <cstdint>
#include <span>
#include <string>

#include "replay/observe/background.hpp"
#include "replay/observe/usage.hpp"
#include "replay/run/lab_thread.hpp"
#include "replay/run/process_memory.hpp"
#include "replay/run/session.hpp"

namespace blockyard::replay {

/// A row of memory.npy, in the layout of docs/reference/campaign-folder.md.
struct MemoryRow {
  std::uint64_t time;               ///< ns of the replay's clock
  std::uint64_t resident;           ///< bytes of the process beyond the lab's own
  std::uint64_t live;               ///< bytes asked for and alive
  std::uint64_t blocks;             ///< live
  std::uint64_t minor_faults;       ///< of the process since the clock's start
  std::uint64_t cpu_ns;             ///< the same
  std::uint64_t background_cpu_ns;  ///< the same, of threads that the allocator started
};
inline constexpr const char* memory_fields =
    "[('time', '<u8'), ('resident', '<u8'), ('live', '<u8'), ('blocks', '<u8'), ('minor_faults', '<u8'), "
    "('cpu_ns', '<u8'), ('background_cpu_ns', '<u8')]";

struct WatchSettings {
  double expected_s = 0;   ///< how long the run takes at its pace; 0 where it has none
  double patience_s = 60;  ///< a run hangs when an event is due and nothing has happened for so long
  std::uint64_t total_ops = 0;
  bool progress = false;  ///< lines on standard error, about four per second
  std::string folder;     ///< files that were begun there are removed when the run is interrupted
};

/// Blocks SIGINT, SIGTERM and SIGHUP for the calling thread and those it creates, including the allocator's: the Watch
/// handles them. Call it before any thread is created.
void block_interrupts();

/// Each run has one. Its thread never preempts a measured thread (LabThread). It uses memory that it took beforehand
/// and allocates nothing.
///
/// An interrupt ends the process with status 128 + signal and leaves no file in the folder.
class Watch {
 public:
  /// The watch uses `background` while it samples; others use it before and after.
  Watch(Session& session, Background& background, const WatchSettings& settings);
  ~Watch();  ///< stop()
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;

  /// Construct it before the lab's resident bytes are read, because its memory belongs to the lab, and start it before
  /// the allocator gets its first call.
  void start(std::uint64_t lab_resident_bytes);
  /// The clock is about to start: the counts in rows begin here.
  void start_clock();
  /// Takes the last row, at `wall_ns`.
  void finish_sampling(std::uint64_t wall_ns);
  [[nodiscard]] std::span<const MemoryRow> rows() const;
  /// Ends the thread. From here on an interrupt stays pending until the process ends.
  void stop();

 private:
  void loop();
  void sample(std::uint64_t time_ns);
  [[nodiscard]] long rest_ns() const;
  void show_progress();
  void check_progress();
  [[noreturn]] void interrupted(int signal);

  Session& session_;
  Background& background_;
  WatchSettings settings_;
  PopulatedMemory row_memory_;
  std::uint64_t lab_resident_bytes_ = 0;
  Work before_{};  ///< at the clock's start
  std::uint64_t interval_ns_;
  std::uint64_t next_sample_ns_ = 0;
  std::size_t row_count_ = 0;
  std::atomic<bool> sampling_{true};
  std::atomic<bool> stopped_sampling_{false};
  std::atomic<bool> stop_{false};
  std::uint64_t last_done_ = ~std::uint64_t{0};
  std::uint64_t last_change_ticks_ = 0;
  std::uint64_t next_progress_ticks_ = 0;
  LabThread thread_;
};

}  // namespace blockyard::replay
