#include "replay/observe/watch.hpp"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>

#include "clock/clock.hpp"
#include "replay/run/crash.hpp"
#include "replay/run/failure.hpp"

namespace blockyard::replay {
namespace {

constexpr std::uint64_t paced_interval_ns = 50'000'000;
constexpr std::uint64_t unpaced_interval_ns = 10'000'000;
// 28 hours of rows at 50 ms would fit. A longer run drops every second row and doubles the interval.
constexpr std::size_t most_rows = 32'768;
constexpr int interrupts[] = {SIGINT, SIGTERM, SIGHUP};

sigset_t interrupt_set() {
  sigset_t set;
  sigemptyset(&set);
  for (const int signal : interrupts) sigaddset(&set, signal);
  return set;
}

}  // namespace

void block_interrupts() {
  const sigset_t set = interrupt_set();
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
}

Watch::Watch(Session& session, Background& background, const WatchSettings& settings)
    : session_(session),
      background_(background),
      settings_(settings),
      row_memory_(most_rows * sizeof(MemoryRow), PopulatedMemory::Pages::ordinary),
      interval_ns_(settings.expected_s > 0 ? paced_interval_ns : unpaced_interval_ns) {}

Watch::~Watch() { stop(); }

void Watch::stop() {
  stop_.store(true);
  thread_.join();
}

void Watch::start(std::uint64_t lab_resident_bytes) {
  lab_resident_bytes_ = lab_resident_bytes;
  thread_.start([](void* self) { static_cast<Watch*>(self)->loop(); }, this);
}

void Watch::loop() {
  last_change_ticks_ = clock::ticks();
  const sigset_t set = interrupt_set();
  while (!stop_.load(std::memory_order_relaxed)) {
    const timespec wait{0, rest_ns()};
    const int signal = sigtimedwait(&set, nullptr, &wait);
    if (signal > 0) interrupted(signal);
    if (session_.phase.load(std::memory_order_acquire) == Phase::running) {
      const std::uint64_t now = clock::ticks();
      if (sampling_.load(std::memory_order_acquire) && now > session_.clock_start) {
        const std::uint64_t time_ns = session_.ns(now - session_.clock_start);
        if (time_ns >= next_sample_ns_) {
          sample(time_ns);
          next_sample_ns_ = (time_ns / interval_ns_ + 1) * interval_ns_;
        }
      }
    }
    if (!sampling_.load(std::memory_order_acquire)) stopped_sampling_.store(true, std::memory_order_release);
    check_progress();
    if (settings_.progress) show_progress();
  }
}

// Until the next sample is due, so that all allocators are sampled at the same times of the journal, but no longer than
// an interrupt or the run's end may wait.
long Watch::rest_ns() const {
  constexpr double longest_rest_ns = 5'000'000;
  if (session_.phase.load(std::memory_order_acquire) != Phase::running) return static_cast<long>(longest_rest_ns);
  const double due =
      static_cast<double>(session_.clock_start) + static_cast<double>(next_sample_ns_) * session_.ticks_per_ns;
  const double left_ns = (due - static_cast<double>(clock::ticks())) / session_.ticks_per_ns;
  return static_cast<long>(std::clamp(left_ns, 50'000.0, longest_rest_ns));
}

void Watch::start_clock() {
  background_.start_clock(session_);
  before_ = work_now();
}

void Watch::sample(std::uint64_t time_ns) {
  auto* rows = reinterpret_cast<MemoryRow*>(row_memory_.begin());
  if (row_count_ == most_rows) {
    for (std::size_t i = 0; i < most_rows / 2; ++i) rows[i] = rows[2 * i];
    row_count_ = most_rows / 2;
    interval_ns_ *= 2;
  }
  const std::uint64_t resident = resident_bytes();
  std::uint64_t live = 0;
  std::uint64_t blocks = 0;
  for (const ReplayThread& thread : session_.threads) {
    live += thread.progress.live.load(std::memory_order_relaxed);
    blocks += thread.progress.blocks.load(std::memory_order_relaxed);
  }
  // Threads are read one after another: a block that one allocates and another frees meanwhile may be missing once.
  if (static_cast<std::int64_t>(live) < 0) live = 0;
  if (static_cast<std::int64_t>(blocks) < 0) blocks = 0;
  const Work work = work_now();
  rows[row_count_++] = {.time = time_ns,
                        .resident = resident > lab_resident_bytes_ ? resident - lab_resident_bytes_ : 0,
                        .live = live,
                        .blocks = blocks,
                        .minor_faults = work.minor_faults - before_.minor_faults,
                        .cpu_ns = work.cpu_ns - before_.cpu_ns,
                        .background_cpu_ns = background_.update(session_)};
}

void Watch::finish_sampling(std::uint64_t wall_ns) {
  sampling_.store(false, std::memory_order_release);
  while (!stopped_sampling_.load(std::memory_order_acquire)) {
    const timespec wait{0, 1'000'000};
    nanosleep(&wait, nullptr);
  }
  const auto* rows = reinterpret_cast<const MemoryRow*>(row_memory_.begin());
  if (row_count_ != 0 && rows[row_count_ - 1].time > wall_ns) wall_ns = rows[row_count_ - 1].time;
  sample(wall_ns);
}

std::span<const MemoryRow> Watch::rows() const {
  return {reinterpret_cast<const MemoryRow*>(row_memory_.begin()), row_count_};
}

void Watch::show_progress() {
  const std::uint64_t now = clock::ticks();
  if (now < next_progress_ticks_) return;
  next_progress_ticks_ = now + static_cast<std::uint64_t>(0.25e9 * session_.ticks_per_ns);
  const Phase phase = session_.phase.load(std::memory_order_acquire);
  std::uint64_t permille = phase > Phase::running ? 1000 : 0;
  const char* text = phase == Phase::starting    ? "starting the allocator"
                     : phase == Phase::restoring ? "restoring the preamble"
                     : phase == Phase::running   ? "replaying"
                                                 : "writing samples";
  if (phase == Phase::running) {
    if (settings_.expected_s > 0 && now > session_.clock_start) {
      const double elapsed_s = static_cast<double>(now - session_.clock_start) / session_.ticks_per_ns / 1e9;
      permille = static_cast<std::uint64_t>(std::min(1.0, elapsed_s / settings_.expected_s) * 1000);
    } else if (settings_.expected_s == 0) {
      std::uint64_t done = 0;
      for (const ReplayThread& thread : session_.threads) done += thread.progress.done.load(std::memory_order_relaxed);
      permille = settings_.total_ops == 0 ? 0 : std::min<std::uint64_t>(1000, done * 1000 / settings_.total_ops);
    }
  }
  SafeText line;
  line << "progress " << permille / 1000 << "." << permille / 100 % 10 << permille / 10 % 10 << permille % 10 << " "
       << text << "\n";
  if (write(STDERR_FILENO, line.c_str(), line.size()) < 0) settings_.progress = false;
}

void Watch::check_progress() {
  const Phase phase = session_.phase.load(std::memory_order_acquire);
  const std::uint64_t now = clock::ticks();
  std::uint64_t done = static_cast<std::uint64_t>(phase) << 56;
  bool overdue = phase != Phase::running;
  const auto patience = static_cast<std::uint64_t>(settings_.patience_s * 1e9 * session_.ticks_per_ns);
  const ReplayThread* stuck = nullptr;
  for (const ReplayThread& thread : session_.threads) {
    const std::uint64_t finished = thread.progress.done.load(std::memory_order_relaxed);
    done += finished + thread.turn.load(std::memory_order_relaxed);  // the start of a thread is progress too
    // A thread that waits for the journal's reader waits for the disk. That may take long and does not mean that it
    // hangs.
    if (phase == Phase::running && finished < thread.published.load(std::memory_order_relaxed) &&
        thread.progress.due.load(std::memory_order_relaxed) + patience < now) {
      overdue = true;
      if (stuck == nullptr) stuck = &thread;
    }
  }
  if (done != last_done_ || phase == Phase::writing) {
    last_done_ = done;
    last_change_ticks_ = now;
    return;
  }
  if (!overdue || now - last_change_ticks_ < patience) return;
  SafeText reason;
  reason << "the allocator " << session_.allocator << " hangs: no progress for "
         << static_cast<std::uint64_t>(settings_.patience_s) << " s ";
  if (stuck != nullptr) {
    reason << "at event " << stuck->record(stuck->progress.done.load(std::memory_order_relaxed)).event;
  } else {
    reason << phase_text(phase);
  }
  fail_run(reason);
}

void Watch::interrupted(int signal) {
  discard_results(settings_.folder.c_str());
  _exit(128 + signal);
}

}  // namespace blockyard::replay
