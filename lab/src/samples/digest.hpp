// Exact distributions of latencies, by view, repeat, metric and size class, what the slow events were caused by, and
// which events were the slowest: all in one pass over all repeats of one allocator.
//
// A latency below 16,384 ticks is counted in a table of its own size; those above are kept, and folded into counts when
// there are many. So every percentile, mean and rate that is taken from a distribution is exact, and a pass costs one
// increment a value. Memory, however many events: for each thread and phase 2.3 MiB for each repeat's tables and one
// more, most of it never touched, and 16 bytes for each distinct latency above (tail.hpp), of those that the machine
// interrupted and those whose cause was looked for once more, and of those that it interrupted in every repeat the
// least.
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

/// malloc is allocate, zeroed and aligned; reallocates stand apart so that a table may join them or not.
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

/// What was called, as causes are told of it.
enum class Operation : std::uint32_t { malloc = 0, realloc = 1, free = 2 };
inline constexpr std::size_t operations = 3;

/// Every value of the column.
inline constexpr std::size_t causes = 256;

class Digest {
 public:
  /// `threads` is held to 1..max_threads; `slowest` events are kept for slowest(); `phases` are kept apart, 1 or more.
  Digest(std::size_t threads, std::size_t slowest, std::size_t phases);
  ~Digest();
  Digest(const Digest&) = delete;
  Digest& operator=(const Digest&) = delete;

  /// Adds `rows` rows of every run; row i is the same event in each of them. May be called again with the rows that
  /// follow of as many runs, for files larger than memory. Rows are only read. After a fault the digest is of no use.
  /// All of them happened in `phase`. Throws std::bad_alloc.
  Fault feed(std::span<const Run> runs, std::uint64_t rows, std::uint32_t phase);

  static constexpr std::uint32_t every = std::numeric_limits<std::uint32_t>::max();

  /// Of all metrics and size classes whose bits are set, together. `run` is a run's place among those fed, or every;
  /// inherent has no runs of its own and ignores it. `phase` is one of those fed, or every.
  Distribution distribution(View view, std::uint32_t metric_bits, std::uint32_t size_class_bits, std::uint32_t run,
                            std::uint32_t phase) const;

  /// The events of all repeats with exactly this value in their column: of a free the call, else call and touch.
  Distribution by_cause(Operation operation, std::uint8_t cause) const;

  /// Each event once, by its slowest repeat, the slowest first.
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
