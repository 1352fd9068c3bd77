#include "replay/run/run.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <iterator>
#include <memory>
#include <optional>

#include "clock/clock.hpp"
#include "journal/event.hpp"
#include "journal/utc_time.hpp"
#include "replay/observe/tracer.hpp"
#include "replay/observe/watch.hpp"
#include "replay/results/block_log.hpp"
#include "replay/results/burst_writer.hpp"
#include "replay/results/npy.hpp"
#include "replay/results/run_json.hpp"
#include "replay/run/blocks.hpp"
#include "replay/run/cores.hpp"
#include "replay/run/crash.hpp"
#include "replay/run/failure.hpp"
#include "replay/run/keep_awake.hpp"
#include "replay/run/pacer.hpp"
#include "replay/run/process_memory.hpp"
#include "replay/run/replay_threads.hpp"
#include "replay/run/rerouting.hpp"
#include "replay/run/stream.hpp"

namespace blockyard::replay {
namespace {

/// No effect of the kernel on an event is shorter: all of them are reported, as is where nothing else is asked for.
constexpr std::uint64_t shortest_cause_ns = 250;
static_assert(shortest_cause_ns == CauseReader::shortest_ns);

WatchSettings watch_settings(const RunSettings& settings, const PlanFile& plan) {
  WatchSettings watch;
  const double duration_s = static_cast<double>(plan.header().duration_ns) / 1e9;
  watch.expected_s = settings.pace == 0 ? 0 : duration_s / settings.pace;
  watch.patience_s = settings.patience_s;
  for (const PlanThread& thread : plan.threads()) watch.total_ops += thread.ops;
  watch.progress = settings.progress;
  watch.folder = settings.output;
  return watch;
}

// Walking stops this long before an event: one page fault or short interrupt does not make the event late.
constexpr double pollute_margin_ns = 2'000;

void check_pace(const RunSettings& settings, const PlanHeader& plan) {
  if (settings.pace == 0) return;
  if ((plan.flags & plan_paced) == 0) {
    throw journal::Error("this journal has no times (it was imported unpaced); replay it with --pace max");
  }
  if (static_cast<double>(plan.duration_ns) / settings.pace > 30.0 * 86'400e9) {
    throw journal::Error("at this pace the replay would take more than 30 days; choose a faster one");
  }
}

// What an adapter lacks is its own fault and not the user's: the run fails.
template <typename Step>
void or_fail(Step step) {
  try {
    step();
  } catch (const journal::Error& error) {
    fail_run(SafeText() << error.what());
  }
}

class Run {
 public:
  /// `board` is null for a run that is not traced.
  Run(const RunSettings& settings, const KeepAwake& awake, TraceBoard* board)
      : settings_(settings),
        awake_(awake),
        plan_(settings.plan),
        memory_(plan_, session_, settings),
        watch_(session_, background_, watch_settings(settings, plan_)) {
    session_.board = board;
  }

  void execute() {
    prepare();
    start_allocator();
    threads_->start();
    replay();
    clear_up();
    write_results();
  }

 private:
  // What is resident up to here belongs to the lab.
  void prepare() {
    check_pace(settings_, plan_.header());
    make_folder(settings_.output);
    for (const char* old :
         {"/run.json", "/samples.npy", "/bursts.npy", "/frame_ends.npy", "/memory.npy", "/blocks.npy", "/syscalls.npy"})
      unlink((settings_.output + old).c_str());
    set_up();
    totals_.ticks_per_ns = session_.ticks_per_ns;
    facts_.started_at = journal::utc_now();
    remember_how_to_fail();
    report_crashes_of(session_);
    totals_.floors = measure_floors();  // so that its pages are populated when it is measured again
    set_up_causes();
    for (ReplayThread& thread : session_.threads) {
      thread.polluter = Polluter(memory_.polluted(), session_.ticks(pollute_margin_ns));
    }
    // One repeat shows which blocks share pages; more would only take space.
    if (settings_.repeat == 1 && (session_.timed || session_.verify)) blocks_.emplace(plan_.header().slots);
    populate_program();
    if (plan_.header().routes != 0) session_.rerouting = &rerouting_.emplace(plan_, session_);
    threads_.emplace(session_, plan_, memory_);
    if (memory_.records().streamed()) {
      stream_.emplace(session_, memory_.records(), begin_rows(), settings_.output);
      stream_->start();
      totals_.stream.emplace().buffer_bytes = memory_.records().bytes();
    }
    reset_peak_resident_bytes();
    totals_.lab_resident_bytes = resident_bytes();
    watch_.start(totals_.lab_resident_bytes);
    background_.remember_lab();
  }

  // Where the rows go, if the run has any.
  RecordWriter* begin_rows() {
    if (session_.timed && !samples_) samples_.emplace(settings_.output, plan_, session_);
    if (session_.in_bursts && !bursts_) bursts_.emplace(settings_.output, plan_, session_);
    if (bursts_) return &*bursts_;
    return samples_ ? &*samples_ : nullptr;
  }

  // Everything of the session that depends on settings alone.
  void set_up() {
    session_.allocator = settings_.allocator.c_str();
    session_.ticks_per_ns = clock::ticks_per_ns();
    session_.ticks_per_plan_ns = settings_.pace == 0 ? 0 : session_.ticks_per_ns / settings_.pace;
    session_.sleep_lead = session_.ticks(sleep_lead_ns);
    session_.touch = settings_.touch;
    session_.in_bursts = settings_.untimed;
    session_.timed = !settings_.untimed && !settings_.verify && !settings_.traced;
    std::merge(plan_.frames().begin(), plan_.frames().end(), plan_.phases().begin(), plan_.phases().end(),
               std::back_inserter(marks_));
    session_.marks = marks_;
    session_.verify = settings_.verify;
    session_.in_order = settings_.in_order;
    if (session_.in_order) give_cores(session_.threads);
  }

  void set_up_causes() {
    // Bursts need them whatever rows say: time that the machine took is not theirs.
    const bool wanted = session_.in_bursts || (session_.timed && settings_.causes_above_ns != 0);
    session_.causes = {.source = wanted ? settings_.cause_source : CauseSource::off,
                       .above_ns = session_.in_bursts ? shortest_cause_ns : settings_.causes_above_ns,
                       .ticks_per_ns = session_.ticks_per_ns,
                       .floor_call = totals_.floors.call,
                       .floor_touch = totals_.floors.touch,
                       .shortest_fault_ns = shortest_fault_ns(session_.ticks_per_ns)};
  }

  void remember_how_to_fail() {
    const FailedRunJson json = failed_run_json(facts_);
    prepare_failure(settings_.output, json.before, json.after);
  }

  // From here on, what becomes resident belongs to the allocator.
  void start_allocator() {
    const PlanHeader& plan = plan_.header();
    Mark* mark = nullptr;
    if (session_.board != nullptr) {
      mark = &session_.board->marks[0];
      session_.board->threads.store(plan.threads, std::memory_order_release);
      session_.board->allocator_loaded.store(1, std::memory_order_release);
    }
    const Marked marked(mark);
    or_fail([this] { loaded_ = load_adapter(settings_.adapter); });
    session_.adapter = loaded_.adapter;
    facts_.adapter = &loaded_;
    session_.locked = (loaded_.adapter->flags & BY_ADAPTER_NEEDS_LOCK) != 0 && plan.threads > 1;
    facts_.locked = session_.locked;
    remember_how_to_fail();
    by_adapter_setup setup{};
    setup.threads = plan.threads;
    setup.peak_bytes = plan.peak_bytes;
    setup.peak_blocks = plan.peak_blocks;
    setup.pool_bytes = plan.pool_bytes;
    setup.populate = settings_.populate ? 1 : 0;
    setup.options = settings_.options.c_str();
    if (const std::string error = loaded_.start(setup); !error.empty()) {
      fail_run(SafeText() << "the allocator " << session_.allocator << " did not start: " << error.c_str());
    }
    or_fail([this] { loaded_.check_functions(); });
    remember_how_to_fail();  // some adapters know their version only now
  }

  void replay() {
    totals_.floors = measure_floors();
    totals_.causes.ns_per_read = session_.threads[0].cause_reader.measure_cost();
    totals_.counters_at_start = loaded_.counters();
    watch_.start_clock();
    const Usage before = usage_now();
    const std::uint64_t awake_cpu_ns = awake_.cpu_ns();
    const std::uint64_t stream_cpu_ns = stream_ ? stream_->cpu_ns() : 0;
    threads_->replay();
    totals_.usage = usage_now() - before;
    totals_.awake_cpu_ns = awake_.cpu_ns() - awake_cpu_ns;
    if (totals_.stream) totals_.stream->cpu_ns = stream_->cpu_ns() - stream_cpu_ns;
    const std::uint64_t peak = peak_resident_bytes();
    totals_.counters_at_stop = loaded_.counters();
    count_threads();
    if (rerouting_) rerouting_->note_peaks();
    watch_.finish_sampling(totals_.wall_ns);
    stream_.reset();  // writes what is left to be written, so that it disturbs nothing that is timed from here on
    totals_.background_cpu_ns = watch_.rows().back().background_cpu_ns;
    totals_.peak_resident_bytes = beyond_lab(peak);
    for (const MemoryRow& row : watch_.rows())
      totals_.peak_resident_bytes = std::max(totals_.peak_resident_bytes, row.resident);
  }

  // Adds up what each thread counted while the clock ran.
  void count_threads() {
    std::uint64_t end = session_.clock_start;
    std::uint64_t walks = 0;
    std::uint64_t complete_walks = 0;
    totals_.causes.source = session_.causes.source;
    for (const ReplayThread& thread : session_.threads) {
      end = std::max(end, thread.end_ticks);
      totals_.order_waits += thread.order_waits;
      walks += thread.polluter.walks();
      complete_walks += thread.polluter.complete();
      if (totals_.stream) {
        totals_.stream->outruns += thread.outruns;
        totals_.stream->waited_ns += session_.ns(thread.outrun_ticks);
      }
      totals_.causes.events += thread.cause_reader.events();
      if (thread.cause_reader.source() < totals_.causes.source) {
        totals_.causes.source = thread.cause_reader.source();
        totals_.causes.refused = thread.cause_reader.refused();
      }
    }
    totals_.wall_ns = session_.ns(end - session_.clock_start);
    if (walks != 0) totals_.polluted = static_cast<double>(complete_walks) / static_cast<double>(walks);
  }

  void clear_up() {
    const std::uint32_t slots = plan_.header().slots;
    session_.phase.store(Phase::freeing, std::memory_order_release);
    totals_.walk = walk_fresh_blocks(session_, slots);
    totals_.rounding = rounding_of_live_blocks(session_, slots, rerouting_ ? nullptr : loaded_.usable_size);
    if (blocks_) blocks_->record(session_);
    chain_leftovers(session_, slots);
    const std::uint64_t begin = clock::ticks();
    threads_->clear_up();
    totals_.teardown_ns = session_.ns(clock::ticks() - begin);
    if (rerouting_) {
      rerouting_->note_peaks();
      totals_.routes = rerouting_->totals();
    }
    totals_.teardown_resident_bytes = beyond_lab(resident_bytes());
    totals_.after_last_free = observe_aftermath(session_, background_);
    totals_.after_last_free.resident_bytes = beyond_lab(totals_.after_last_free.resident_bytes);
    for (const ReplayThread& thread : session_.threads) {
      totals_.thread_start_ns.push_back(session_.ns(thread.start_ticks));
      totals_.thread_stop_ns.push_back(session_.ns(thread.stop_ticks));
    }
    totals_.background_threads = background_.threads();
    totals_.background_names = background_.names();
  }

  [[nodiscard]] std::uint64_t beyond_lab(std::uint64_t resident) const {
    return resident > totals_.lab_resident_bytes ? resident - totals_.lab_resident_bytes : 0;
  }

  void write_results() {
    session_.phase.store(Phase::writing, std::memory_order_release);
    begin_rows();
    if (bursts_) {
      bursts_->finish();
      totals_.burst_ns = bursts_->burst_ns();
    }
    if (samples_) {
      LatenessHistogram lateness = samples_->finish();
      totals_.samples = samples_->totals();
      totals_.interrupted_threads = samples_->interrupted_threads();
      if (settings_.pace != 0) totals_.lateness = std::move(lateness);
    }
    if (!settings_.traced) write_npy(settings_.output + "/memory.npy", memory_fields, watch_.rows());
    if (blocks_) blocks_->write(settings_.output);
    watch_.stop();  // an interrupt comes too late from here on: the run is finished
    AtomicFile file(settings_.output + "/run.json");
    const std::string json = finished_run_json(facts_, totals_);
    file.write(json.data(), json.size());
    file.commit();
  }

  const RunSettings& settings_;
  const KeepAwake& awake_;
  Session session_;
  PlanFile plan_;
  RunMemory memory_;
  Background background_;
  Watch watch_;
  std::optional<Rerouting> rerouting_;  ///< of a plan with routes
  std::optional<ReplayThreads> threads_;
  std::vector<std::uint32_t> marks_;
  std::optional<BurstWriter> bursts_;    ///< as samples_, of an untimed run
  std::optional<SampleWriter> samples_;  ///< a streamed run has it from the start, other runs when they are over
  std::optional<Stream> stream_;
  std::optional<BlockLog> blocks_;
  LoadedAdapter loaded_;
  Totals totals_;
  RunFacts facts_{settings_, plan_, nullptr, false, {}};
};

}  // namespace

void run(const RunSettings& settings) {
  block_interrupts();
  KeepAwake awake;
  if (settings.keep_awake) awake.start();
  TraceBoard* board = nullptr;
  if (settings.traced) {
    make_folder(settings.output);
    board = &go_on_traced(settings.output);
  }
  Run(settings, awake, board).execute();
}

std::string pace_text(double pace) {
  if (pace == 0) return "max";
  char text[32];
  std::snprintf(text, sizeof text, "%gx", pace);
  return text;
}

const char* touch_text(Touch touch) {
  constexpr const char* texts[] = {"none", "first", "page", "all"};
  return texts[static_cast<std::size_t>(touch)];
}

}  // namespace blockyard::replay
