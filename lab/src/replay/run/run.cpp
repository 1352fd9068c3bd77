#include "replay/run/run.hpp"

#include <pthread.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <memory>
#include <optional>
#include <vector>

#include "base/clock.hpp"
#include "journal/event.hpp"
#include "replay/observe/background.hpp"
#include "replay/observe/placement.hpp"
#include "replay/observe/tracer.hpp"
#include "replay/observe/usage.hpp"
#include "replay/observe/watch.hpp"
#include "replay/plan/plan_file.hpp"
#include "replay/results/atomic_file.hpp"
#include "replay/results/memory_log.hpp"
#include "replay/results/run_json.hpp"
#include "replay/results/sample_writer.hpp"
#include "replay/run/adapter_host.hpp"
#include "replay/run/cores.hpp"
#include "replay/run/crash.hpp"
#include "replay/run/drive.hpp"
#include "replay/run/failure.hpp"
#include "replay/run/handshake.hpp"
#include "replay/run/keep_awake.hpp"
#include "replay/run/pacer.hpp"
#include "replay/run/process_memory.hpp"
#include "replay/run/records.hpp"
#include "replay/run/run_memory.hpp"
#include "replay/run/session.hpp"
#include "replay/run/stream.hpp"
#include "replay/run/thread_runner.hpp"

namespace blockyard::replay {
namespace {

// All threads are awake and spinning by then.
constexpr double clock_lead_ns = 5'000'000;
// Walking stops so long before an event: one page fault or short interrupt does not make the event late.
constexpr double pollute_margin_ns = 2'000;

void* run_thread(void* runner) {
  static_cast<ThreadRunner*>(runner)->run();
  return nullptr;
}

// Checks what a block was left with, and hands each thread a chain of the blocks that it gave and nobody freed.
void chain_leftovers(Session& session, std::uint32_t slots) {
  for (std::uint32_t index = 0; index < slots; ++index) {
    Slot& slot = session.slots[index];
    if (slot.block == nullptr) continue;
    if (session.verify) check_pattern(session, slot, slot.size, slot.done.load(std::memory_order_relaxed));
    ReplayThread& giver = session.threads[slot.giver];
    slot.done.store(giver.chain, std::memory_order_relaxed);
    giver.chain = index;
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
        watch_(session_, background_, watch_settings()) {
    session_.board = board;
  }

  void execute() {
    make_ready();
    start_allocator();
    start_threads();
    replay();
    clear_up();
    write_results();
  }

 private:
  [[nodiscard]] WatchSettings watch_settings() const {
    WatchSettings watch;
    const PlanHeader& plan = plan_.header();
    watch.expected_s = settings_.pace == 0 ? 0 : static_cast<double>(plan.duration_ns) / 1e9 / settings_.pace;
    watch.patience_s = settings_.patience_s;
    for (const PlanThread& thread : plan_.threads()) watch.total_ops += thread.ops;
    watch.progress = settings_.progress;
    watch.folder = settings_.output;
    return watch;
  }

  void make_ready() {
    const PlanHeader& plan = plan_.header();
    if (settings_.pace != 0 && (plan.flags & plan_paced) == 0) {
      throw journal::Error("this journal has no times (it was imported unpaced); replay it with --pace max");
    }
    if (settings_.pace != 0 && static_cast<double>(plan.duration_ns) / settings_.pace > 30.0 * 86'400e9) {
      throw journal::Error("at this pace the replay would take more than 30 days; choose a faster one");
    }
    make_folder(settings_.output);
    for (const char* old : {"/run.json", "/samples.npy", "/memory.npy", "/syscalls.npy"})
      unlink((settings_.output + old).c_str());
    session_.ticks_per_ns = base::ticks_per_ns();
    session_.ticks_per_plan_ns = settings_.pace == 0 ? 0 : session_.ticks_per_ns / settings_.pace;
    session_.sleep_lead = static_cast<std::uint64_t>(sleep_lead_ns * session_.ticks_per_ns);
    session_.touch = settings_.touch;
    session_.timed = !settings_.untimed && !settings_.verify && !settings_.traced;
    session_.verify = settings_.verify;
    session_.in_order = settings_.in_order;
    if (session_.in_order) give_cores(session_.threads);
    session_.allocator = settings_.allocator.c_str();
    totals_.ticks_per_ns = session_.ticks_per_ns;
    facts_.started_at = utc_now();
    remember_how_to_fail();
    report_crashes_of(session_);
    totals_.floors = measure_floors();  // its pages are there when it is measured again
    session_.look = {.source = session_.timed && settings_.causes_above_ns != 0 ? settings_.look_with : LookSource::off,
                     .above_ns = settings_.causes_above_ns,
                     .ticks_per_ns = session_.ticks_per_ns,
                     .floor_call = totals_.floors.call,
                     .floor_touch = totals_.floors.touch,
                     .shortest_fault_ns = shortest_fault_ns(session_.ticks_per_ns)};
    for (ReplayThread& thread : session_.threads) {
      thread.polluter =
          Polluter(memory_.polluted(), static_cast<std::uint64_t>(pollute_margin_ns * session_.ticks_per_ns));
    }
    populate_program();
    for (std::uint32_t index = 1; index < plan.threads; ++index) {
      runners_.push_back(std::make_unique<ThreadRunner>(session_, plan_, memory_.thread(index)));
    }
    pthreads_.resize(plan.threads);
    if (memory_.records().streamed()) {
      if (session_.timed) samples_.emplace(settings_.output, plan_, session_);
      stream_.emplace(session_, memory_.records(), samples_ ? &*samples_ : nullptr, settings_.output);
      stream_->start();
      totals_.stream.emplace().buffer_bytes = memory_.records().bytes();
    }
    reset_peak_resident_bytes();
    totals_.lab_resident_bytes = resident_bytes();
    watch_.start(totals_.lab_resident_bytes);
    background_.remember_lab();
  }

  void remember_how_to_fail() {
    const FailedRunJson json = failed_run_json(facts_);
    prepare_failure(settings_.output, json.before, json.after);
  }

  // What an adapter lacks is its own fault, not the user's: a failed run.
  template <typename Step>
  static void or_fail(Step step) {
    try {
      step();
    } catch (const journal::Error& error) {
      fail_run(SafeText() << error.what());
    }
  }

  // From here on, what becomes resident is the allocator's.
  void start_allocator() {
    Mark* const mark = session_.board == nullptr ? nullptr : &session_.board->marks[0];
    if (session_.board != nullptr) {
      session_.board->threads.store(plan_.header().threads, std::memory_order_release);
      session_.board->allocator_loaded.store(1, std::memory_order_release);
    }
    const Marked marked(mark);
    or_fail([this] { loaded_ = load_adapter(settings_.adapter); });
    const PlanHeader& plan = plan_.header();
    session_.adapter = loaded_.adapter;
    facts_.adapter = &loaded_;
    session_.locked = (loaded_.adapter->flags & BY_ADAPTER_NEEDS_LOCK) != 0 && plan.threads > 1;
    facts_.locked = session_.locked;
    remember_how_to_fail();
    char error[512] = {};
    const by_adapter_setup setup{.abi = BY_ADAPTER_ABI,
                                 .threads = plan.threads,
                                 .peak_bytes = plan.peak_bytes,
                                 .peak_blocks = plan.peak_blocks,
                                 .pool_bytes = plan.pool_bytes,
                                 .populate = settings_.populate ? 1 : 0,
                                 .options = settings_.options.c_str(),
                                 .error = error,
                                 .error_bytes = sizeof error};
    if (loaded_.adapter->init(&setup) != 0) {
      SafeText reason;
      reason << "the allocator " << session_.allocator
             << " did not start: " << (error[0] != '\0' ? error : "it gave no reason");
      fail_run(reason);
    }
    or_fail([this] { loaded_.check_functions(); });
    remember_how_to_fail();  // some adapters know their version only now
  }

  void start_threads() {
    session_.phase.store(Phase::restoring, std::memory_order_release);
    for (std::size_t index = 1; index < session_.threads.size(); ++index) {
      pthread_attr_t attributes;
      pthread_attr_init(&attributes);
      pthread_attr_setstack(&attributes, memory_.stack(index).begin(), memory_.stack(index).size());
      const int failed = pthread_create(&pthreads_[index], &attributes, run_thread, runners_[index - 1].get());
      pthread_attr_destroy(&attributes);
      if (failed != 0) {
        SafeText reason;
        reason << "the system refuses thread " << std::uint64_t{index + 1} << " of "
               << std::uint64_t{session_.threads.size()} << " (" << std::strerror(failed)
               << "); raise the limit, or replay with --threads one";
        fail_run(reason);
      }
    }
    main_runner_.prepare();
    await(session_.restored, 1);
  }

  void replay() {
    totals_.floors = measure_floors();
    totals_.looking.ns_a_look = session_.threads[0].looker.measure_cost();
    totals_.counters_at_start = loaded_.counters();
    watch_.start_clock();
    const Usage before = usage_now();
    const std::uint64_t awake_cpu_ns = awake_.cpu_ns();
    const std::uint64_t stream_cpu_ns = stream_ ? stream_->cpu_ns() : 0;
    session_.clock_start = base::ticks() + static_cast<std::uint64_t>(clock_lead_ns * session_.ticks_per_ns);
    session_.phase.store(Phase::running, std::memory_order_release);
    announce(session_.go, 1);
    main_runner_.replay();
    await(session_.finished, static_cast<std::uint32_t>(session_.threads.size()));
    totals_.usage = usage_now() - before;
    totals_.awake_cpu_ns = awake_.cpu_ns() - awake_cpu_ns;
    if (totals_.stream) totals_.stream->cpu_ns = stream_->cpu_ns() - stream_cpu_ns;
    const std::uint64_t peak = peak_resident_bytes();
    totals_.counters_at_stop = loaded_.counters();

    std::uint64_t end = session_.clock_start;
    for (const ReplayThread& thread : session_.threads) {
      end = std::max(end, thread.end_ticks);
      totals_.order_waits += thread.order_waits;
      if (!totals_.stream) continue;
      totals_.stream->outruns += thread.outruns;
      totals_.stream->waited_ns +=
          static_cast<std::uint64_t>(static_cast<double>(thread.outrun_ticks) / session_.ticks_per_ns);
    }
    totals_.looking.count(session_);
    count_walks();
    totals_.wall_ns =
        static_cast<std::uint64_t>(static_cast<double>(end - session_.clock_start) / session_.ticks_per_ns);
    watch_.finish_sampling(totals_.wall_ns);
    stream_.reset();  // writes what is left to be written, so that it is not in the way of what is timed from here on
    totals_.background_cpu_ns = watch_.rows().back().background_cpu_ns;
    for (const MemoryRow& row : watch_.rows())
      totals_.peak_resident_bytes = std::max(totals_.peak_resident_bytes, row.resident);
    if (peak > totals_.lab_resident_bytes) {
      totals_.peak_resident_bytes = std::max(totals_.peak_resident_bytes, peak - totals_.lab_resident_bytes);
    }
  }

  void count_walks() {
    std::uint64_t walks = 0;
    std::uint64_t complete = 0;
    for (const ReplayThread& thread : session_.threads) {
      walks += thread.polluter.walks();
      complete += thread.polluter.complete();
    }
    if (walks != 0) totals_.polluted = static_cast<double>(complete) / static_cast<double>(walks);
  }

  void clear_up() {
    session_.phase.store(Phase::freeing, std::memory_order_release);
    totals_.walk = walk_fresh_blocks(session_, plan_.header().slots);
    totals_.rounding = rounding_of_live_blocks(session_, plan_.header().slots, loaded_.usable_size);
    chain_leftovers(session_, plan_.header().slots);
    const std::uint64_t begin = base::ticks();
    main_runner_.clear_up();
    for (std::size_t index = 1; index < session_.threads.size(); ++index) {
      announce(session_.threads[index].turn, 2);
      see_off(index);
    }
    totals_.teardown_ns = ns(base::ticks() - begin);
    totals_.teardown_resident_bytes = beyond_lab(resident_bytes());
    see_it_settle();
    for (const ReplayThread& thread : session_.threads) {
      totals_.thread_start_ns.push_back(ns(thread.start_ticks));
      totals_.thread_stop_ns.push_back(ns(thread.stop_ticks));
    }
    totals_.background_threads = background_.threads();
    totals_.background_names = background_.names();
  }

  // Lets the thread clear up and waits for its end, awake: what the allocator does when a thread ends (its thread-local
  // destructors) shall not be mixed with the time that it takes to wake up.
  void see_off(std::size_t index) {
    ReplayThread& thread = session_.threads[index];
    while (pthread_tryjoin_np(pthreads_[index], nullptr) == EBUSY) sched_yield();
    thread.stop_ticks += base::ticks() - thread.left_ticks;
  }

  // What the allocator's own threads still do. Without any, nothing can happen any more.
  void see_it_settle() {
    constexpr std::uint64_t quiet_ns = 50'000'000;
    constexpr std::uint64_t longest_ns = 1'000'000'000;
    constexpr std::uint64_t idle_cpu_ns = 50'000;  // between two looks: a thread that only looks whether it has work
    constexpr timespec rest{0, 5'000'000};
    const std::uint64_t begin = base::ticks();
    const Work before = work_now();
    const std::uint64_t cpu_before = background_.update(session_);
    std::uint64_t cpu = cpu_before;
    std::uint64_t resident = resident_bytes();
    std::uint64_t active_ns = 0;
    while (background_.alive()) {
      nanosleep(&rest, nullptr);
      const std::uint64_t now_ns = ns(base::ticks() - begin);
      const std::uint64_t cpu_now = background_.update(session_);
      const std::uint64_t resident_now = resident_bytes();
      if (cpu_now - cpu > idle_cpu_ns || resident_now != resident) active_ns = now_ns;
      cpu = cpu_now;
      resident = resident_now;
      if (now_ns - active_ns >= quiet_ns || now_ns >= longest_ns) break;
    }
    totals_.after_last_free = {.cpu_ns = cpu - cpu_before,
                               .minor_faults = work_now().minor_faults - before.minor_faults,
                               .resident_bytes = beyond_lab(resident),
                               .settled_after_ns = active_ns};
  }

  [[nodiscard]] std::uint64_t ns(std::uint64_t ticks) const {
    return static_cast<std::uint64_t>(static_cast<double>(ticks) / session_.ticks_per_ns);
  }
  [[nodiscard]] std::uint64_t beyond_lab(std::uint64_t resident) const {
    return resident > totals_.lab_resident_bytes ? resident - totals_.lab_resident_bytes : 0;
  }

  void write_results() {
    session_.phase.store(Phase::writing, std::memory_order_release);
    if (session_.timed) {
      if (!samples_) samples_.emplace(settings_.output, plan_, session_);
      LatenessHistogram lateness = samples_->finish();
      totals_.samples = samples_->totals();
      totals_.interrupted_threads = samples_->interrupted_threads();
      if (settings_.pace != 0) totals_.lateness = std::move(lateness);
    }
    if (!settings_.traced) write_memory(settings_.output, watch_.rows());
    watch_.stop();  // from here on an interrupt comes too late: the run is finished
    const std::string json = finished_run_json(facts_, totals_);
    AtomicFile file(settings_.output + "/run.json");
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
  std::optional<SampleWriter> samples_;  ///< of a streamed run from the start, else when it is over
  std::optional<Stream> stream_;
  LoadedAdapter loaded_;
  Totals totals_;
  RunFacts facts_{settings_, plan_, nullptr, false, {}};
  ThreadRunner main_runner_{session_, plan_, memory_.thread(0)};
  std::vector<std::unique_ptr<ThreadRunner>> runners_;
  std::vector<pthread_t> pthreads_;
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
  switch (touch) {
    case Touch::nothing:
      return "none";
    case Touch::page:
      return "page";
    case Touch::all:
      return "all";
  }
  return "";
}

}  // namespace blockyard::replay
