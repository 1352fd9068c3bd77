#include "samples/digest.hpp"

#include <algorithm>
#include <new>

#include "samples/shares.hpp"

namespace blockyard::samples {

namespace {

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

}  // namespace

/// Sets of tables: one for each run as it came, then one for the minimum over all. A lone run is its own minimum.
constexpr std::size_t sets_of(std::size_t runs) { return runs == 1 ? 1 : runs + 1; }

/// One thread's share of a digest. Each phase has its sets of tables.
class Digest::Worker {
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
  Fault pass(std::span<const Run> runs, std::uint64_t begin, std::uint64_t end, std::uint64_t previous,
             std::uint64_t offset, std::uint32_t phase) {
    first_set_ = phase * (inherent_ + 1);
    phase_ = phase;
    for (std::uint64_t i = begin; i < end; ++i) {
      const Row& first = runs[0].rows[i];
      const std::uint32_t event = first.event;
      const std::uint8_t kind = first.kind;
      if (kind > kind_reallocate) return {Fault::What::kind, 0, i};
      if (previous != no_event && event <= previous) return {Fault::What::order, 0, i};
      previous = event;
      const std::size_t klass = size_class(first.size);

      Latency least = latency(first, runs[0]);
      by_samples_slow most{offset + i, least.both, 0};
      std::size_t struck = 0;
      add(0, kind, klass, least);
      if (first.cause != 0) [[unlikely]]
        struck += explain(0, kind, klass, first, least);
      for (std::size_t r = 1; r < runs.size(); ++r) {
        const Row& row = runs[r].rows[i];
        if (row.event != event || row.kind != kind || row.size != first.size) {
          return {Fault::What::other_event, static_cast<std::uint32_t>(r), i};
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

Digest::Digest(std::size_t threads, std::size_t slowest, std::size_t phases)
    : threads_(std::clamp<std::size_t>(threads, 1, max_threads)),
      kept_(slowest),
      phases_(std::max<std::size_t>(phases, 1)) {}

Digest::~Digest() = default;

Fault Digest::feed(std::span<const Run> runs, std::uint64_t rows, std::uint32_t phase) {
  if (runs.empty() || rows == 0) return {};
  if (workers_.empty()) {
    runs_ = runs.size();
    for (std::size_t i = 0; i < threads_; ++i) workers_.push_back(std::make_unique<Worker>(runs_, kept_, phases_));
  }
  if (runs.size() != runs_ || phase >= phases_) return {Fault::What::other_event, 0, rows_fed_};
  const std::size_t shares = shares_of(rows, workers_.size());
  std::vector<Fault> faults(shares);
  for_each_share(rows, shares, [&](std::size_t share, std::uint64_t begin, std::uint64_t end) {
    const std::uint64_t previous = begin == 0 ? last_event_ : runs[0].rows[begin - 1].event;
    faults[share] = workers_[share]->pass(runs, begin, end, previous, rows_fed_, phase);
  });
  for (Fault fault : faults) {
    if (fault.what == Fault::What::none) continue;
    fault.row += rows_fed_;
    return fault;
  }
  rows_fed_ += rows;
  last_event_ = runs[0].rows[rows - 1].event;
  return {};
}

Distribution Digest::distribution(View view, std::uint32_t metric_bits, std::uint32_t size_class_bits,
                                  std::uint32_t run, std::uint32_t phase) const {
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

Distribution Digest::by_cause(Operation operation, std::uint8_t cause) const {
  TailSum all;
  for (const auto& worker : workers_) all.add(worker->by_cause(operation, cause));
  return all.sum();
}

std::vector<by_samples_slow> Digest::slowest() const {
  std::vector<by_samples_slow> all;
  for (const auto& worker : workers_) all.insert(all.end(), worker->slowest().begin(), worker->slowest().end());
  std::sort(all.begin(), all.end(), slower);
  if (all.size() > kept_) all.resize(kept_);
  return all;
}

}  // namespace blockyard::samples
