// In one pass over all repeats of one allocator: exact distributions of latencies by view, repeat, metric and size
// class, the causes of the slow events, and the slowest events.
//
// A latency below 16,384 ticks is counted in a table. Those above are kept one by one, and folded into counts when
// there are many (tail.hpp). So every percentile, mean and rate of a distribution is exact, and a value costs one
// increment.
//
// Memory does not grow with the events. For each thread and phase, each repeat has tables of 2.3 MiB, and one more
// repeat stands for the minimum; most of them is never touched. Each distinct latency above takes 16 bytes. It takes
// them again for events that the machine interrupted, for events whose causes were read, and for the minima of events
// that it interrupted in every repeat.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <memory>
#include <span>
#include <vector>

#include "samples/latency.hpp"
#include "samples/samples.h"
#include "samples/tail.hpp"

namespace blockyard::samples {

/// malloc is allocate, zeroed and aligned; reallocates are separate, so that a table may join them or not.
enum class Metric : std::uint32_t {
  malloc_call = 0,
  malloc_touch = 1,
  malloc_both = 2,
  realloc_call = 3,
  realloc_touch = 4,
  realloc_both = 5,
  free_call = 6,
};
inline constexpr std::size_t metrics = 7;

/// What was called, for causes.
enum class Operation : std::uint32_t { malloc = 0, realloc = 1, free = 2 };
inline constexpr std::size_t operations = 3;

/// How many values the column may have.
inline constexpr std::size_t causes = 256;

class Digest {
 public:
  /// `threads` is limited to 1..max_threads; `slowest` events are kept for slowest(); `phases`, 1 or more, are kept
  /// apart.
  Digest(std::size_t threads, std::size_t slowest, std::size_t phases);
  ~Digest();
  Digest(const Digest&) = delete;
  Digest& operator=(const Digest&) = delete;

  /// Adds `rows` rows of every run, all of which happened in `phase`; row i is the same event in each run. For files
  /// larger than memory, call it again with the rows that follow, of as many runs. Rows are only read. After a fault
  /// the digest is of no use. Throws std::bad_alloc.
  Fault feed(std::span<const Run> runs, std::uint64_t rows, std::uint32_t phase);

  static constexpr std::uint32_t every = std::numeric_limits<std::uint32_t>::max();

  /// All metrics and size classes whose bits are set, together. `run` is a run's place among those fed, or every;
  /// inherent has no runs and ignores it. `phase` is one of those fed, or every.
  Distribution distribution(View view, std::uint32_t metric_bits, std::uint32_t size_class_bits, std::uint32_t run,
                            std::uint32_t phase) const;

  /// The events of all repeats with exactly this value in their column: of a free the call, otherwise call and touch.
  Distribution by_cause(Operation operation, std::uint8_t cause) const;

  /// Each event once, with its slowest repeat, the slowest first.
  std::vector<by_samples_slow> slowest() const;

 private:
  class Worker;
  std::size_t threads_;
  std::size_t kept_;
  std::size_t phases_;
  std::vector<std::unique_ptr<Worker>> workers_;
  std::size_t runs_ = 0;
  std::uint64_t rows_fed_ = 0;
  std::uint64_t last_event_ = no_event;
  static constexpr std::uint64_t no_event = std::numeric_limits<std::uint64_t>::max();
};

}  // namespace blockyard::samples
