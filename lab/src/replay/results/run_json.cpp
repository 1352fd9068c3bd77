#include "replay/results/run_json.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <string_view>

#include "journal/routes.hpp"

namespace blockyard::replay {
namespace {

using journal::Json;

constexpr const char* reason_mark = "@reason@";

// By Refusal.
constexpr const char* reasons[refusals] = {"other_thread", "outlives_frame", "outlives_scope", "does_not_fit",
                                           "split",        "preamble",       "unfinished"};

// The variables that tune allocators and the loader. All others are the user's own business.
Json environment() {
  constexpr std::array<std::string_view, 14> prefixes = {
      "GLIBC_TUNABLES", "LD_PRELOAD", "LD_LIBRARY_PATH", "MALLOC_",   "JE_",    "MIMALLOC_", "TCMALLOC_",
      "HEAP_PROFILE",   "TBB_",       "RPMALLOC_",       "SNMALLOC_", "SCUDO_", "BY_",       "BLOCKYARD_"};
  Json variables = Json::object();
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    const std::size_t equals = text.find('=');
    if (equals == std::string_view::npos) continue;
    for (const std::string_view prefix : prefixes) {
      if (text.substr(0, equals).starts_with(prefix)) {
        variables[std::string(text.substr(0, equals))] = std::string(text.substr(equals + 1));
        break;
      }
    }
  }
  return variables;
}

Json common(const RunFacts& facts, const char* status) {
  const RunSettings& settings = facts.settings;
  const PlanHeader& plan = facts.plan.header();
  Json run = Json::object();
  run["format"] = 1;
  run["status"] = status;
  run["reason"] = nullptr;
  run["journal"] = settings.journal;
  run["allocator"] = settings.allocator;
  run["variant"] = settings.variant;
  run["version"] = facts.adapter != nullptr ? facts.adapter->adapter->version : "";
  run["adapter"] = settings.foreign.empty() ? settings.adapter : settings.foreign;
  const std::uint32_t flags = facts.adapter != nullptr ? facts.adapter->adapter->flags : 0;
  run["needs_lock"] = (flags & BY_ADAPTER_NEEDS_LOCK) != 0;
  run["needs_pool"] = (flags & BY_ADAPTER_NEEDS_POOL) != 0;
  run["locked"] = facts.locked;
  run["pool_bytes"] = (flags & BY_ADAPTER_NEEDS_POOL) != 0 ? plan.pool_bytes : 0;
  run["notes"] = facts.adapter != nullptr ? Json(facts.adapter->notes()) : Json::array();
  run["pace"] = pace_text(settings.pace);
  run["touch"] = touch_text(settings.touch);
  run["populate"] = settings.populate;
  run["options"] = settings.options;
  run["repeat"] = settings.repeat;
  run["threads"] = (plan.flags & plan_one_thread) != 0 ? "one" : "journal";
  run["replay_threads"] = plan.threads;
  run["in_order"] = settings.in_order;
  run["keep_awake"] = settings.keep_awake;
  run["untimed"] = settings.untimed;
  run["verified"] = settings.verify;
  run["traced"] = settings.traced;
  run["events"] = plan.measured_events;
  run["environment"] = environment();
  run["started_at"] = facts.started_at;
  return run;
}

const char* source_text(CauseSource source) {
  constexpr const char* texts[] = {"off", "getrusage", "perf"};
  return texts[static_cast<std::size_t>(source)];
}

// Why the source is not perf; null where it is.
Json why_not_perf(const RunSettings& settings, const CauseTotals& causes) {
  switch (causes.source) {
    case CauseSource::perf:
      return nullptr;
    case CauseSource::off:
      return settings.causes_above_ns == 0 ? "it was switched off" : "a run without a clock around events has none";
    case CauseSource::getrusage:
      break;
  }
  if (causes.refused == 0) return "it was asked for";
  return std::string("the kernel refuses software perf counters (") + std::strerror(causes.refused) +
         "); they need kernel.perf_event_paranoid of 1 or less, or CAP_PERFMON";
}

Json causes_json(const RunSettings& settings, const CauseTotals& causes) {
  return {{"threshold_ns", settings.causes_above_ns},
          {"events", causes.events},
          {"ns_a_look", causes.ns_per_read},
          {"source", source_text(causes.source)},
          {"reason", why_not_perf(settings, causes)}};
}

// How many cores everything else on the machine kept busy; null for a run so short that the kernel's steps of 10 ms
// hide it.
Json busy_cores(const Totals& totals) {
  constexpr std::uint64_t shortest_ns = 200'000'000;
  if (totals.wall_ns < shortest_ns || totals.usage.machine_ns == Usage::unknown) return nullptr;
  const std::uint64_t own = totals.usage.cpu_ns() + totals.awake_cpu_ns;
  const std::uint64_t others = totals.usage.machine_ns > own ? totals.usage.machine_ns - own : 0;
  return static_cast<double>(others) / static_cast<double>(totals.wall_ns);
}

// The sum of calls, touches and ends of frames, floors taken off.
std::uint64_t timed_ns(const Totals& totals) {
  const SampleTotals& samples = *totals.samples;
  const std::uint64_t all = samples.call_ticks + samples.touch_ticks + samples.frame_end_ticks;
  const std::uint64_t floors =
      (samples.events + samples.frame_ends) * totals.floors.call + samples.touched * totals.floors.touch;
  return all > floors ? static_cast<std::uint64_t>(static_cast<double>(all - floors) / totals.ticks_per_ns) : 0;
}

// Each count before the clock started and while it ran; null where the allocator counts nothing.
Json counters_json(const Totals& totals) {
  if (totals.counters_at_stop.empty()) return nullptr;
  Json counters = Json::object();
  for (std::size_t index = 0; index < totals.counters_at_stop.size(); ++index) {
    const auto& [name, stop] = totals.counters_at_stop[index];
    const std::uint64_t start = totals.counters_at_start[index].second;
    counters[name] = {{"before", start}, {"during", stop - start}};
  }
  return counters;
}

Json routes_json(const RunFacts& facts, const Totals& totals) {
  Json routes = Json::array();
  for (std::size_t index = 0; index < totals.routes.size(); ++index) {
    Json route = route_json(facts.plan.routes()[index]);
    route["region_peak_bytes"] = totals.routes[index].region_peak_bytes;
    route["overflowed"] = totals.routes[index].overflowed;
    routes.push_back(std::move(route));
  }
  return routes;
}

}  // namespace

Json route_json(const PlanRoute& route) {
  auto refused = Json::object();
  for (std::size_t reason = 0; reason < refusals; ++reason) {
    if (route.refused[reason] != 0) refused[reasons[reason]] = route.refused[reason];
  }
  return {{"group", route.group},
          {"kind", journal::route_names[route.kind]},
          {"bytes", route.bytes},
          {"blocks", route.blocks},
          {"refused", refused},
          {"peak_bytes", route.peak_bytes},
          {"extra_bytes", route.extra_bytes}};
}

std::string finished_run_json(const RunFacts& facts, const Totals& totals) {
  Json run = common(facts, "ok");
  run["ticks_per_ns"] = totals.ticks_per_ns;
  run["floor_call_ticks"] = totals.floors.call;
  run["floor_touch_ticks"] = totals.floors.touch;
  run["clock_step_ticks"] = totals.floors.step;
  run["wall_ns"] = totals.wall_ns;
  const std::uint64_t reader_ns = totals.stream ? totals.stream->cpu_ns : 0;
  const Usage& usage = totals.usage;
  run["cpu_ns"] = usage.cpu_ns() - std::min(reader_ns, usage.cpu_ns());
  run["user_ns"] = usage.user_ns;
  run["system_ns"] = usage.system_ns;
  run["minor_faults"] = usage.minor_faults;
  run["major_faults"] = usage.major_faults;
  run["voluntary_switches"] = usage.voluntary_switches;
  run["involuntary_switches"] = usage.involuntary_switches;
  run["busy_cores"] = busy_cores(totals);
  run["awake_cpu_ns"] = totals.awake_cpu_ns;
  run["peak_resident_bytes"] = totals.peak_resident_bytes;
  run["lab_resident_bytes"] = totals.lab_resident_bytes;
  run["teardown_resident_bytes"] = totals.teardown_resident_bytes;
  run["lateness_ns"] = nullptr;
  if (totals.lateness) {
    const LatenessHistogram& late = *totals.lateness;
    run["lateness_ns"] = {{"p50", late.percentile(0.5)},
                          {"p99", late.percentile(0.99)},
                          {"p999", late.percentile(0.999)},
                          {"max", late.max()}};
  }
  run["order_waits"] = totals.order_waits;
  run["stream"] = nullptr;
  if (totals.stream) {
    const StreamTotals& stream = *totals.stream;
    run["stream"] = {{"buffer_bytes", stream.buffer_bytes},
                     {"outruns", stream.outruns},
                     {"waited_ns", stream.waited_ns},
                     {"reader_cpu_ns", stream.cpu_ns}};
  }
  const bool sampled = totals.samples.has_value();
  run["order_inversions"] = sampled ? Json(totals.samples->order_inversions) : Json(nullptr);
  run["interrupted_threads"] = totals.lateness ? Json(totals.interrupted_threads) : Json(nullptr);
  run["timed_ns"] = sampled ? Json(timed_ns(totals)) : Json(nullptr);
  run["burst_ns"] = totals.burst_ns ? Json(*totals.burst_ns) : Json(nullptr);
  run["background"] = {
      {"threads", totals.background_threads}, {"cpu_ns", totals.background_cpu_ns}, {"names", totals.background_names}};
  run["counters"] = counters_json(totals);
  run["teardown_ns"] = totals.teardown_ns;
  run["after_last_free"] = {{"cpu_ns", totals.after_last_free.cpu_ns},
                            {"minor_faults", totals.after_last_free.minor_faults},
                            {"resident_bytes", totals.after_last_free.resident_bytes},
                            {"settled_after_ns", totals.after_last_free.settled_after_ns}};
  run["thread_start_ns"] = totals.thread_start_ns;
  run["thread_stop_ns"] = totals.thread_stop_ns;
  run["live_at_stop"] = nullptr;
  if (totals.rounding) {
    run["live_at_stop"] = {{"blocks", totals.rounding->blocks},
                           {"asked_bytes", totals.rounding->asked_bytes},
                           {"usable_bytes", totals.rounding->usable_bytes},
                           {"rounding_bytes", totals.rounding->resident_bytes}};
  }
  run["walked_blocks"] = totals.walk.blocks;
  run["walk_ns_a_block"] = totals.walk.blocks != 0 ? Json(totals.walk.ns_a_block) : Json(nullptr);
  run["pollute_bytes"] = facts.settings.pollute_bytes;
  run["polluted"] = totals.polluted ? Json(*totals.polluted) : Json(nullptr);
  run["looking"] = causes_json(facts.settings, totals.causes);
  if (!totals.routes.empty()) run["routes"] = routes_json(facts, totals);
  return journal::json_text(run) + "\n";
}

FailedRunJson failed_run_json(const RunFacts& facts) {
  Json run = common(facts, "failed");
  run["reason"] = reason_mark;
  const std::string whole = journal::json_text(run) + "\n";
  const std::size_t at = whole.find(reason_mark);
  return {whole.substr(0, at), whole.substr(at + std::string_view(reason_mark).size())};
}

}  // namespace blockyard::replay
