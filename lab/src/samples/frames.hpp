// Allocator time in each frame of one thread: sums over stretches of the journal that are given by event numbers, so
// that a frame has the same events in every repeat and on every allocator.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "samples/latency.hpp"

namespace blockyard::samples {

/// One way to cut a journal into frames.
struct Cut {
  static constexpr std::uint32_t all_threads = std::numeric_limits<std::uint32_t>::max();

  std::uint32_t thread;  ///< whose events count: the row's `thread`, or all_threads
  /// Event numbers, rising: frame i has the events from edges[i] on and below edges[i + 1].
  std::vector<std::uint32_t> edges;

  [[nodiscard]] std::size_t frames() const { return edges.size() < 2 ? 0 : edges.size() - 1; }
};

/// What the frames of one cut took, in the group's ticks: call and touch of an allocation, the call of a free.
struct FrameTimes {
  std::vector<std::uint32_t> events;                   ///< by frame
  std::vector<std::vector<std::uint64_t>> as_run;      ///< by run and frame
  std::vector<std::vector<std::uint64_t>> attributed;  ///< the same by View::attributed
  std::vector<std::uint64_t> inherent;                 ///< by frame: each event's minimum over all runs
};

class FrameSums {
 public:
  /// `threads` is limited to 1..max_threads. Memory: 8 bytes per frame, run, view and thread.
  FrameSums(std::vector<Cut> cuts, std::size_t runs, std::size_t threads);
  ~FrameSums();
  FrameSums(const FrameSums&) = delete;
  FrameSums& operator=(const FrameSums&) = delete;

  /// Adds `rows` rows of every run in which a digest found no fault. Call it again with the rows that follow. O(rows *
  /// runs * cuts).
  void feed(std::span<const Run> runs, std::uint64_t rows);

  [[nodiscard]] FrameTimes times(std::size_t cut) const;
  [[nodiscard]] std::size_t runs() const { return runs_; }
  [[nodiscard]] const std::vector<Cut>& cuts() const { return cuts_; }

 private:
  class Worker;
  std::vector<Cut> cuts_;
  std::size_t runs_;
  std::vector<std::unique_ptr<Worker>> workers_;
};

}  // namespace blockyard::samples
