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
#include <algorithm>
#include <cstdlib>
#include <memory>
#include <new>
#include <span>
#include <vector>

#include "samples/latency.hpp"
#include "samples/shares.hpp"
#include "samples/tail.hpp"

using namespace blockyard::samples;

namespace {

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
constexpr std::size_t metrics = 7;

/// What was called, for causes.
enum class Operation : std::uint32_t { malloc = 0, realloc = 1, free = 2 };
constexpr std::size_t operations = 3;

/// How many values the column may have.
constexpr std::size_t causes = 256;

enum Fault : std::uint32_t { nothing = 0, unknown_kind = 1, wrong_order = 2, other_event = 3, no_memory = 4 };

constexpr std::uint64_t no_event = std::numeric_limits<std::uint64_t>::max();
constexpr std::uint32_t every = std::numeric_limits<std::uint32_t>::max();

/// Latencies below this are counted by value. 6 us at 2.6 GHz: all but a few in a thousand.
constexpr std::uint32_t counted = 1U << 14;
constexpr std::size_t tables = metrics * size_classes;

constexpr std::size_t table_index(Metric metric, std::size_t size_class) {
  return static_cast<std::size_t>(metric) * size_classes + size_class;
}

/// Adds each latency `times` times.
void put(std::vector<std::uint64_t>& low, Distribution& above, const Distribution& more, std::uint64_t times) {
  Distribution high;
  for (std::size_t i = 0; i < more.ticks.size(); ++i) {
    const std::uint64_t count = more.counts[i] * times;
    if (more.ticks[i] < counted) {
      low[more.ticks[i]] += count;
    } else {
      high.ticks.push_back(more.ticks[i]);
      high.counts.push_back(count);
    }
  }
  above = merged(above, high);
}

/// Removes latencies, all of which are in there; a count may become 0.
void subtract(std::vector<std::uint64_t>& low, Distribution& above, const Distribution& gone) {
  std::size_t place = 0;
  for (std::size_t i = 0; i < gone.ticks.size(); ++i) {
    if (gone.ticks[i] < counted) {
      low[gone.ticks[i]] -= gone.counts[i];
      continue;
    }
    while (above.ticks[place] != gone.ticks[i]) ++place;
    above.counts[place] -= gone.counts[i];
  }
}

bool slower(const by_samples_slow& left, const by_samples_slow& right) {
  return left.ticks != right.ticks ? left.ticks > right.ticks : left.row < right.row;
}

/// Sets of tables: one for each run as it came, then one for the minimum over all. A lone run is its own minimum.
constexpr std::size_t sets_of(std::size_t runs) { return runs == 1 ? 1 : runs + 1; }

/// One thread's share of a digest. Each phase has its sets of tables.
class Worker {
 public:
  // calloc and not a vector: pages that no latency falls into stay untouched and cost nothing.
  Worker(std::size_t runs, std::size_t slowest, std::size_t phases)
      : low_(
            static_cast<std::uint32_t*>(std::calloc(phases * sets_of(runs) * tables * counted, sizeof(std::uint32_t)))),
        high_(phases * sets_of(runs) * tables),
        machine_(phases * sets_of(runs) * tables),
        returned_(phases * tables),
        by_cause_(operations * causes),
        inherent_(sets_of(runs) - 1),
        kept_(slowest) {
    if (!low_) throw std::bad_alloc();
  }

  /// Rows [begin, end) of all runs; `previous` is the event before row `begin`, `offset` the number of row 0.
  by_samples_fault pass(std::span<const Run> runs, std::uint64_t begin, std::uint64_t end, std::uint64_t previous,
                        std::uint64_t offset, std::uint32_t phase) {
    first_set_ = phase * (inherent_ + 1);
    phase_ = phase;
    for (std::uint64_t i = begin; i < end; ++i) {
      const Row& first = row_of(runs[0], i);
      const std::uint32_t event = first.event;
      const std::uint8_t kind = first.kind;
      if (kind > kind_reallocate) return {unknown_kind, 0, i};
      if (previous != no_event && event <= previous) return {wrong_order, 0, i};
      previous = event;
      const std::size_t klass = size_class(first.size);

      Latency least = latency(first, runs[0]);
      by_samples_slow most{offset + i, least.both, 0};
      std::size_t struck = 0;
      add(0, kind, klass, least);
      if (first.cause != 0) [[unlikely]]
        struck += explain(0, kind, klass, first, least);
      for (std::size_t r = 1; r < runs.size(); ++r) {
        const Row& row = row_of(runs[r], i);
        if (row.event != event || row.kind != kind || row.size != first.size) {
          return {other_event, static_cast<std::uint32_t>(r), i};
        }
        const Latency here = latency(row, runs[r]);
        add(r, kind, klass, here);
        if (row.cause != 0) [[unlikely]]
          struck += explain(r, kind, klass, row, here);
        lower(least, here);
        if (here.both > most.ticks) most = {offset + i, here.both, static_cast<std::uint32_t>(r)};
      }
      if (inherent_ != 0) add(inherent_, kind, klass, least);
      if (returns(struck, runs.size())) [[unlikely]]
        keep_in(returned_, phase_ * tables, kind, klass, least);
      if (most.ticks >= slow_from_) [[unlikely]]
        keep(most);
    }
    return {};
  }

  const std::uint32_t* low(std::size_t set, std::size_t table) const {
    return low_.get() + (set * tables + table) * counted;
  }
  const Tail& high(std::size_t set, std::size_t table) const { return high_[set * tables + table]; }
  const Tail& machine(std::size_t set, std::size_t table) const { return machine_[set * tables + table]; }
  /// A count stands for one in each run of its phase.
  const Tail& returned(std::size_t phase, std::size_t table) const { return returned_[phase * tables + table]; }
  const Tail& by_cause(Operation operation, std::uint8_t cause) const {
    return by_cause_[static_cast<std::size_t>(operation) * causes + cause];
  }
  const std::vector<by_samples_slow>& slowest() const { return slowest_; }

 private:
  struct Free {
    void operator()(void* memory) const { std::free(memory); }
  };

  static Metric call_of(std::uint8_t kind) {
    return kind == kind_free ? Metric::free_call : kind == kind_reallocate ? Metric::realloc_call : Metric::malloc_call;
  }
  static Metric next(Metric metric, std::uint32_t steps) {
    return static_cast<Metric>(static_cast<std::uint32_t>(metric) + steps);
  }

  void add(std::size_t run, std::uint8_t kind, std::size_t klass, const Latency& value) {
    const std::size_t set = first_set_ + run;
    const Metric call = call_of(kind);
    count(set, table_index(call, klass), value.call);
    if (kind == kind_free) return;
    if (value.touched) count(set, table_index(next(call, 1), klass), value.touch);
    count(set, table_index(next(call, 2), klass), value.both);
  }

  void count(std::size_t set, std::size_t table, std::uint32_t ticks) {
    if (ticks < counted) [[likely]] {
      ++low_.get()[(set * tables + table) * counted + ticks];
    } else {
      high_[set * tables + table].add(ticks);
    }
  }

  /// An event whose causes were read: counts it by cause, and again if the machine did it, for the view without those.
  /// Returns whether the machine did it.
  bool explain(std::size_t run, std::uint8_t kind, std::size_t klass, const Row& row, const Latency& value) {
    const Operation operation = kind == kind_free         ? Operation::free
                                : kind == kind_reallocate ? Operation::realloc
                                                          : Operation::malloc;
    by_cause_[static_cast<std::size_t>(operation) * causes + row.cause].add(value.both);
    if (!by_machine(row)) return false;
    keep_in(machine_, (first_set_ + run) * tables, kind, klass, value);
    return true;
  }

  /// Adds to the tables that begin at `first`.
  static void keep_in(std::vector<Tail>& tails, std::size_t first, std::uint8_t kind, std::size_t klass,
                      const Latency& value) {
    const Metric call = call_of(kind);
    tails[first + table_index(call, klass)].add(value.call);
    if (kind == kind_free) return;
    if (value.touched) tails[first + table_index(next(call, 1), klass)].add(value.touch);
    tails[first + table_index(next(call, 2), klass)].add(value.both);
  }

  /// A heap whose top is the fastest of those kept; a row of latency 0 is kept while there is room.
  void keep(const by_samples_slow& event) {
    if (kept_ == 0) return;
    if (slowest_.size() == kept_) {
      if (!slower(event, slowest_.front())) return;
      std::pop_heap(slowest_.begin(), slowest_.end(), slower);
      slowest_.back() = event;
    } else {
      slowest_.push_back(event);
    }
    std::push_heap(slowest_.begin(), slowest_.end(), slower);
    if (slowest_.size() == kept_) slow_from_ = slowest_.front().ticks;
  }

  std::unique_ptr<std::uint32_t, Free> low_;
  std::vector<Tail> high_;
  std::vector<Tail> machine_;
  std::vector<Tail> returned_;
  std::vector<Tail> by_cause_;
  std::size_t inherent_;
  std::size_t first_set_ = 0;
  std::size_t phase_ = 0;
  std::size_t kept_;
  std::uint32_t slow_from_ = 0;
  std::vector<by_samples_slow> slowest_;
};

}  // namespace

struct by_samples_digest {
  by_samples_digest(std::size_t threads, std::size_t slowest, std::size_t phases)
      : threads_(std::clamp<std::size_t>(threads, 1, max_threads)),
        kept_(slowest),
        phases_(std::max<std::size_t>(phases, 1)) {}

  /// Rows are only read. After a fault the digest is of no use.
  by_samples_fault feed(std::span<const Run> runs, std::uint64_t rows, std::uint32_t phase) {
    if (runs.empty() || rows == 0) return {};
    if (workers_.empty()) {
      runs_ = runs.size();
      for (std::size_t i = 0; i < threads_; ++i) workers_.push_back(std::make_unique<Worker>(runs_, kept_, phases_));
    }
    if (runs.size() != runs_ || phase >= phases_) return {other_event, 0, rows_fed_};
    const std::size_t shares = shares_of(rows, workers_.size());
    std::vector<by_samples_fault> faults(shares);
    for_each_share(rows, shares, [&](std::size_t share, std::uint64_t begin, std::uint64_t end) {
      const std::uint64_t previous = begin == 0 ? last_event_ : row_of(runs[0], begin - 1).event;
      faults[share] = workers_[share]->pass(runs, begin, end, previous, rows_fed_, phase);
    });
    for (by_samples_fault fault : faults) {
      if (fault.what == nothing) continue;
      fault.row += rows_fed_;
      return fault;
    }
    rows_fed_ += rows;
    last_event_ = row_of(runs[0], rows - 1).event;
    return {};
  }

  /// All metrics and size classes whose bits are set, together. `run` is a run's place among those fed, or every;
  /// inherent has no runs and ignores it. `phase` is one of those fed, or every.
  Distribution distribution(View view, std::uint32_t metric_bits, std::uint32_t size_class_bits, std::uint32_t run,
                            std::uint32_t phase) const {
    const std::size_t begin = view == View::inherent ? sets_of(runs_) - 1 : run == every ? 0 : run;
    const std::size_t end = view == View::inherent || run != every ? begin + 1 : runs_;
    const std::size_t first_phase = phase == every ? 0 : phase;
    const std::size_t end_phase = phase == every ? phases_ : phase + 1;
    std::vector<std::uint64_t> low(counted);
    TailSum high;
    TailSum machine;
    TailSum returned;
    for (std::size_t table = 0; table < tables; ++table) {
      if ((metric_bits >> (table / size_classes) & 1) == 0 || (size_class_bits >> (table % size_classes) & 1) == 0)
        continue;
      for (const auto& worker : workers_) {
        for (std::size_t place = first_phase; place < end_phase; ++place) {
          const std::size_t first = place * sets_of(runs_);
          for (std::size_t set = first + begin; set < first + end; ++set) {
            const std::uint32_t* counts = worker->low(set, table);
            for (std::uint32_t ticks = 0; ticks < counted; ++ticks) low[ticks] += counts[ticks];
            high.add(worker->high(set, table));
            if (view == View::attributed) machine.add(worker->machine(set, table));
          }
          if (view == View::attributed) returned.add(worker->returned(place, table));
        }
      }
    }
    Distribution above = high.sum();
    if (!machine.empty()) subtract(low, above, machine.sum());
    if (!returned.empty()) put(low, above, returned.sum(), end - begin);
    Distribution result;
    for (std::uint32_t ticks = 0; ticks < counted; ++ticks) {
      if (low[ticks] == 0) continue;
      result.ticks.push_back(ticks);
      result.counts.push_back(low[ticks]);
    }
    for (std::size_t i = 0; i < above.ticks.size(); ++i) {
      if (above.counts[i] == 0) continue;
      result.ticks.push_back(above.ticks[i]);
      result.counts.push_back(above.counts[i]);
    }
    return result;
  }

  /// The events of all repeats with exactly this value in their column: of a free the call, otherwise call and touch.
  Distribution by_cause(Operation operation, std::uint8_t cause) const {
    TailSum all;
    for (const auto& worker : workers_) all.add(worker->by_cause(operation, cause));
    return all.sum();
  }

  /// Each event once, with its slowest repeat, the slowest first.
  std::vector<by_samples_slow> slowest() const {
    std::vector<by_samples_slow> all;
    for (const auto& worker : workers_) all.insert(all.end(), worker->slowest().begin(), worker->slowest().end());
    std::sort(all.begin(), all.end(), slower);
    if (all.size() > kept_) all.resize(kept_);
    return all;
  }

 private:
  std::size_t threads_;
  std::size_t kept_;
  std::size_t phases_;
  std::vector<std::unique_ptr<Worker>> workers_;
  std::size_t runs_ = 0;
  std::uint64_t rows_fed_ = 0;
  std::uint64_t last_event_ = no_event;
};

namespace {

std::size_t copied(const Distribution& found, std::uint32_t* ticks, std::uint64_t* counts, std::size_t capacity) {
  const auto many = static_cast<std::ptrdiff_t>(std::min(capacity, found.ticks.size()));
  std::copy(found.ticks.begin(), found.ticks.begin() + many, ticks);
  std::copy(found.counts.begin(), found.counts.begin() + many, counts);
  return found.ticks.size();
}

}  // namespace

extern "C" {

uint32_t by_samples_abi(void) { return BY_SAMPLES_ABI; }

by_samples_digest* by_samples_digest_new(uint32_t threads, uint32_t slowest, uint32_t phases) try {
  return new by_samples_digest(threads, slowest, phases);
} catch (const std::bad_alloc&) {
  return nullptr;
}

void by_samples_digest_delete(by_samples_digest* digest) { delete digest; }

by_samples_fault by_samples_digest_feed(by_samples_digest* digest, const by_samples_run* runs, uint32_t run_count,
                                        uint64_t rows, uint32_t phase) try {
  return digest->feed({runs, run_count}, rows, phase);
} catch (const std::bad_alloc&) {
  return {no_memory, 0, 0};
}

size_t by_samples_digest_copy(const by_samples_digest* digest, uint32_t view, uint32_t metric_bits,
                              uint32_t size_class_bits, uint32_t run, uint32_t phase, uint32_t* ticks, uint64_t* counts,
                              size_t capacity) try {
  return copied(digest->distribution(static_cast<View>(view), metric_bits, size_class_bits, run, phase), ticks, counts,
                capacity);
} catch (const std::bad_alloc&) {
  return SIZE_MAX;
}

size_t by_samples_digest_cause(const by_samples_digest* digest, uint32_t operation, uint32_t cause, uint32_t* ticks,
                               uint64_t* counts, size_t capacity) try {
  return copied(digest->by_cause(static_cast<Operation>(operation), static_cast<std::uint8_t>(cause)), ticks, counts,
                capacity);
} catch (const std::bad_alloc&) {
  return SIZE_MAX;
}

size_t by_samples_digest_slowest(const by_samples_digest* digest, by_samples_slow* events, size_t capacity) try {
  const std::vector<by_samples_slow> found = digest->slowest();
  std::copy_n(found.begin(), std::min(capacity, found.size()), events);
  return found.size();
} catch (const std::bad_alloc&) {
  return SIZE_MAX;
}

}  // extern "C"
