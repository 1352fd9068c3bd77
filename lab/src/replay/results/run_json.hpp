// Composes run.json, in the layout of docs/reference/campaign-folder.md.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "journal/json_text.hpp"
#include "replay/observe/background.hpp"
#include "replay/observe/placement.hpp"
#include "replay/observe/usage.hpp"
#include "replay/plan/plan_file.hpp"
#include "replay/results/lateness.hpp"
#include "replay/results/sample_writer.hpp"
#include "replay/run/adapter_host.hpp"
#include "replay/run/rerouting.hpp"
#include "replay/run/run.hpp"
#include "replay/run/timed_call.hpp"

namespace blockyard::replay {

/// How reading ahead went, for a journal that is larger than the memory for it.
struct StreamTotals {
  std::uint64_t buffer_bytes = 0;  ///< of all rings
  std::uint64_t outruns = 0;       ///< how often a thread had to wait for the reader
  std::uint64_t waited_ns = 0;     ///< how long, all threads together
  std::uint64_t cpu_ns = 0;        ///< of the reader, while the clock ran
};

/// How causes were found.
struct CauseTotals {
  CauseSource source = CauseSource::off;
  int refused = 0;           ///< errno with which the kernel refused a better source
  std::uint64_t events = 0;  ///< whose rows name a cause
  double ns_per_read = 0;
};

/// What a finished run measured as a whole: everything in run.json that is no setting.
struct Totals {
  Floors floors{};
  double ticks_per_ns = 0;
  std::uint64_t wall_ns = 0;
  Usage usage;                     ///< while the clock ran
  std::uint64_t awake_cpu_ns = 0;  ///< the same of the processes that kept the cores awake
  std::uint64_t peak_resident_bytes = 0;
  std::uint64_t lab_resident_bytes = 0;
  std::uint64_t teardown_resident_bytes = 0;
  std::uint64_t order_waits = 0;
  std::optional<StreamTotals> stream;  ///< none where all records were in memory
  std::optional<double> polluted;      ///< share of the walks between events that went all the way
  CauseTotals causes;
  std::uint64_t background_threads = 0;
  std::uint64_t background_cpu_ns = 0;
  std::vector<std::string> background_names;
  Counters counters_at_start;  ///< when the clock started
  Counters counters_at_stop;
  Walk walk;
  std::optional<Rounding> rounding;  ///< none where the allocator does not say
  std::uint64_t teardown_ns = 0;     ///< from the clock's stop until all blocks were freed and all threads gone
  Aftermath after_last_free;
  std::vector<std::uint64_t> thread_start_ns;
  std::vector<std::uint64_t> thread_stop_ns;
  std::optional<SampleTotals> samples;  ///< none where calls are not timed
  std::uint64_t interrupted_threads = 0;
  std::optional<std::uint64_t> burst_ns;      ///< of all bursts of an untimed run
  std::vector<RouteTotals> routes;            ///< of a plan with routes
  std::optional<LatenessHistogram> lateness;  ///< none at `--pace max` and untimed
};

/// `adapter` is null until one is loaded.
struct RunFacts {
  const RunSettings& settings;
  const PlanFile& plan;
  const LoadedAdapter* adapter = nullptr;
  bool locked = false;
  std::string started_at;
};

std::string finished_run_json(const RunFacts& facts, const Totals& totals);

/// The same for a failed run, in two parts: the characters of the reason go between them.
struct FailedRunJson {
  std::string before;
  std::string after;
};
FailedRunJson failed_run_json(const RunFacts& facts);

/// A route, as the plan has it: `group`, `kind`, `bytes`, `blocks`, `refused` by reason, `peak_bytes`, `extra_bytes`.
journal::Json route_json(const PlanRoute& route);

}  // namespace blockyard::replay
