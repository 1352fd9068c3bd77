#include "replay/observe/cause_reader.hpp"

#include <linux/perf_event.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "clock/clock.hpp"
#include "replay/run/clock_ns.hpp"

namespace blockyard::replay {
namespace {

// Less is the noise of two reads and of the clock's rate.
constexpr double stolen_ns = 1'000;
// How much longer than usual a reading may take after a sleep, when its code and data are no longer cached, or on
// another core (more than 10 us were seen). A thread that is preempted meanwhile is gone for longer.
constexpr double cold_read_ns = 50'000;
// The rate is known to 6 digits: over a longer stretch its error would pass for stolen time.
constexpr double longest_comparison_ns = 100e6;
// Much shorter, so that shorter stretches are compared as long as there are readings.
constexpr double cpu_lasts_ns = 10e6;

// The migrations of the calling thread.
int open_counter() {
  perf_event_attr attributes{};
  attributes.size = sizeof attributes;
  attributes.type = PERF_TYPE_SOFTWARE;
  attributes.config = PERF_COUNT_SW_CPU_MIGRATIONS;
  attributes.exclude_hv = 1;
  return static_cast<int>(syscall(SYS_perf_event_open, &attributes, 0, -1, -1, PERF_FLAG_FD_CLOEXEC));
}

}  // namespace

double shortest_fault_ns(double ticks_per_ns) {
  constexpr std::size_t pages = 257;
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  void* const memory =
      mmap(nullptr, pages * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) return 0;
  madvise(memory, pages * page, MADV_NOHUGEPAGE);
  const auto* bytes = static_cast<const volatile char*>(memory);
  std::uint64_t shortest = ~std::uint64_t{0};
  for (std::size_t i = 0; i < pages; ++i) {
    const std::uint64_t begin = clock::ticks_fenced();
    (void)bytes[i * page];
    shortest = std::min(shortest, clock::ticks_fenced() - begin);
  }
  munmap(memory, pages * page);
  return static_cast<double>(shortest) / ticks_per_ns;
}

void CauseReader::open(const CauseSettings& settings) {
  if (settings.source == CauseSource::off) return;
  source_ = CauseSource::getrusage;
  if (settings.source == CauseSource::perf) {
    counter_ = open_counter();
    refused_ = counter_ < 0 ? errno : 0;
    if (counter_ >= 0) source_ = CauseSource::perf;
  }
  ticks_per_ns_ = settings.ticks_per_ns;
  const auto ticks = [&](double ns) { return static_cast<std::uint64_t>(ns * ticks_per_ns_); };
  const auto above = static_cast<double>(settings.above_ns);
  limit_ = settings.floor_call +
           ticks(std::max(std::min(above, shortest_ns), std::min(settings.shortest_fault_ns / 2, gap_ns)));
  row_from_ = settings.floor_call + ticks(above);
  floor_touch_ = settings.floor_touch;
  gap_ = ticks(gap_ns);
  pause_ = ticks(pause_ns);
  cpu_lasts_ = ticks(cpu_lasts_ns);
  rebase();
  longest_ = ticks(measure_cost() + cold_read_ns);
}

CauseReader::Counts CauseReader::counts_now(bool with_cpu) const {
  Counts now = base_;
  rusage usage{};
  getrusage(RUSAGE_THREAD, &usage);
  now.minor_faults = static_cast<std::uint64_t>(usage.ru_minflt);
  now.major_faults = static_cast<std::uint64_t>(usage.ru_majflt);
  now.voluntary = static_cast<std::uint64_t>(usage.ru_nvcsw);
  now.involuntary = static_cast<std::uint64_t>(usage.ru_nivcsw);
  if (source_ != CauseSource::perf) {
    now.core = static_cast<std::uint32_t>(sched_getcpu());
  } else if (now.voluntary != base_.voluntary || now.involuntary != base_.involuntary) {
    std::uint64_t migrations = 0;  // a thread that was not switched away from is not moved either
    if (::read(counter_, &migrations, sizeof migrations) == static_cast<ssize_t>(sizeof migrations)) {
      now.migrations = migrations;
    }
  }
  if (with_cpu) {
    now.cpu_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
    now.cpu_ticks = clock::ticks();
  }
  now.ticks = clock::ticks();
  return now;
}

// A reading that was interrupted may have missed what the interruption did: then it is repeated.
void CauseReader::renew_base() {
  constexpr int attempts = 4;  // a machine so busy that it interrupts every one of them has no clean event either
  for (int attempt = 0; attempt < attempts; ++attempt) {
    const std::uint64_t begin = clock::ticks();
    base_ = counts_now(true);
    seen_ = base_.ticks;
    unread_ = 0;
    if (seen_ - begin <= longest_) break;
  }
}

void CauseReader::rebase() {
  if (source_ != CauseSource::off) renew_base();
}

std::uint8_t CauseReader::read(std::uint64_t begin, std::uint64_t end, std::uint8_t fault) {
  if (source_ == CauseSource::off) return 0;
  const Counts before = base_;
  const bool gap_before = begin - seen_ > gap_;
  // After an event that is too short to show a pause of the host, the thread's processor time is not read. What the
  // thread has lost since the last reading of it was noticed as a gap, or is too short to be reported.
  const bool with_cpu = end - begin >= pause_ || end - before.cpu_ticks > cpu_lasts_;
  const Counts after = counts_now(with_cpu);
  const std::uint64_t unread = unread_;
  unread_ = with_cpu ? 0 : unread + (end - begin);
  const bool gap_after = after.ticks - end > longest_;
  if (gap_after) {
    renew_base();
  } else {
    base_ = after;
    seen_ = after.ticks;
  }
  std::uint8_t bits = 0;
  if (after.minor_faults != before.minor_faults) bits |= fault;
  if (after.major_faults != before.major_faults) bits |= cause::major_fault;
  lost_ = 0;
  if (gap_before || gap_after || end - begin < gap_) return bits;
  const bool preempted = after.involuntary != before.involuntary;
  const bool slept = after.voluntary != before.voluntary;
  if (preempted) bits |= cause::preempted;
  if (slept) bits |= cause::slept;
  if (after.migrations != before.migrations || after.core != before.core) bits |= cause::migrated;
  // A switch explains why the thread did not run. Where there was none, its processor did not run either. Time that
  // earlier events may have lost, after which it was not read, may not be this event's.
  const double between_ns = static_cast<double>(after.cpu_ticks - before.cpu_ticks) / ticks_per_ns_;
  const double lost_ns =
      between_ns - static_cast<double>(after.cpu_ns - before.cpu_ns) - static_cast<double>(unread) / ticks_per_ns_;
  const double event_ns = static_cast<double>(end - begin) / ticks_per_ns_;
  if (end - begin < pause_ || lost_ns <= stolen_ns) return bits;
  lost_ = static_cast<std::uint64_t>(lost_ns * ticks_per_ns_);
  if (!preempted && !slept && between_ns < longest_comparison_ns && lost_ns <= event_ns) bits |= cause::host_paused;
  return bits;
}

double CauseReader::measure_cost() {
  if (source_ == CauseSource::off) return 0;
  std::array<std::uint64_t, 1001> costs{};
  for (std::uint64_t& cost : costs) {
    const std::uint64_t begin = clock::ticks_fenced();
    rebase();
    cost = clock::ticks_fenced() - begin;
  }
  std::nth_element(costs.begin(), costs.begin() + costs.size() / 2, costs.end());
  return static_cast<double>(costs[costs.size() / 2]) / ticks_per_ns_;
}

}  // namespace blockyard::replay
