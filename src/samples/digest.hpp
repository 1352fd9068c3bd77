// Exact distributions of latencies, by view, metric and size class, in one pass over all repeats of one allocator.
//
// A latency below 65,536 ticks is counted in a table of its own size; the few above are kept and sorted at the end. So
// every percentile, mean and rate that is taken from a distribution is exact, and a pass costs one increment a value.
// Memory: at most 36 MiB a thread for the tables, most of it never touched, and 4 bytes for each latency above.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <memory>
#include <span>
#include <vector>

#include "samples/row.hpp"

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

/// How often each latency occurred, in rising order of latency.
struct Distribution {
  std::vector<std::uint32_t> ticks;
  std::vector<std::uint64_t> counts;
};

class Digest {
 public:
  /// `threads` is held to 1..max_threads. Throws std::bad_alloc.
  explicit Digest(std::size_t threads);
  ~Digest();
  Digest(const Digest&) = delete;
  Digest& operator=(const Digest&) = delete;

  /// Adds `rows` rows of every run; row i is the same event in each of them. May be called again with the rows that
  /// follow, for files larger than memory. Rows are only read. After a fault the digest is of no use.
  Fault feed(std::span<const Run> runs, std::uint64_t rows);

  Distribution distribution(View view, Metric metric, std::size_t size_class) const;

 private:
  class Worker;
  std::vector<std::unique_ptr<Worker>> workers_;
  std::uint64_t rows_fed_ = 0;
  std::uint64_t last_event_ = no_event;
  static constexpr std::uint64_t no_event = std::numeric_limits<std::uint64_t>::max();
};

}  // namespace blockyard::samples
