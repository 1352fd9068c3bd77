// The thread beside the measured ones: samples memory, shows progress, ends a run that hangs or is interrupted.
#pragma once

#include <atomic>
#include <cstdint>
#include <span>
#include <string>

#include "replay/observe/background.hpp"
#include "replay/observe/usage.hpp"
#include "replay/results/memory_log.hpp"
#include "replay/run/lab_thread.hpp"
#include "replay/run/process_memory.hpp"
#include "replay/run/session.hpp"

namespace blockyard::replay {

struct WatchSettings {
  double expected_s = 0;   ///< how long the run takes at its pace; 0 where it has none
  double patience_s = 60;  ///< a run without progress for so long, though an event is due, hangs
  std::uint64_t total_ops = 0;
  bool progress = false;  ///< lines on standard error, about four times a second
  std::string folder;     ///< what is begun there is removed when the run is interrupted
};

/// Signals that end a run in good order are handled by the Watch: blocks SIGINT, SIGTERM and SIGHUP for the calling
/// thread and those it creates, the allocator's own included. Before any thread is created.
void block_interrupts();

/// One a run. The thread is of the lowest priority that still gets its turn (SCHED_BATCH, nice 19): it never preempts a
/// measured thread. Uses memory that it was given beforehand and allocates nothing.
///
/// An interrupt ends the process with status 128 + signal and leaves no file in the folder.
class Watch {
 public:
  /// `background` is used by the watch while it samples, by others before and after.
  Watch(Session& session, Background& background, const WatchSettings& settings);
  ~Watch();  ///< stop()
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;

  /// The thread's memory belongs to the lab: constructed before the lab's resident bytes are read, started before the
  /// allocator gets its first call.
  void start(std::uint64_t lab_resident_bytes);
  /// The clock is about to start: what rows count counts from here.
  void start_clock();
  /// Takes the last row, at `wall_ns`; no more after that.
  void finish_sampling(std::uint64_t wall_ns);
  [[nodiscard]] std::span<const MemoryRow> rows() const;
  /// Ends the thread. An interrupt from here on stays pending until the process ends.
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
  Work before_{};  ///< the clock's start
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
