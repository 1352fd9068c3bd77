// Why an event was slow: what the kernel counted on its thread meanwhile.
//
// A thread reads its counters after each slow event and compares them with a *base*: what they were at the last
// reading. A fast event costs two comparisons and no system call. This is right as long as nothing that happened before
// an event is still missing from the base. What could make the base stale, and why it does not:
//
// - A page fault in a fast event. There is none. A fault takes longer than `shortest_ns`, and longer than half of the
//   shortest of a few hundred faults that the run made itself. After everything that took that long the counters are
//   read, even when the event is too fast for its row to name a cause. (An event that is slow enough for its row, and
//   shorter than that, did its own work: its counters need no reading.)
// - The pacer's sleeps, waits for another thread, a reading itself: the base is renewed after each.
// - A preemption, a migration or a pause of the host while the thread spins or does the replayer's own work. All of
//   them are gaps in the clock, and the loop reads the clock all the time: after two reads more than `gap_ns` apart,
//   the base is renewed. Where such a gap lies directly before a slow event or inside the reading after it, and where
//   the event was shorter than any switch, the machine's doing may not be the event's. Such an event gets none of the
//   machine's causes and stays with the allocator, which is the stricter error.
// - The replayer's own page faults. There are none once the clock runs.
//
// No counter shows interrupts that switch to no other thread (the kernel's timer, a network card: 1 to 15 us each), nor
// what a host does to its guest without counting it as stolen time. Both stay in the allocator's figures. The allocator
// `null`, which does nothing, shows how much that is.
#pragma once

#include <cstdint>

#include "samples/row.hpp"

namespace blockyard::replay {

namespace cause = samples::cause;

/// Where the counts come from. getrusage counts faults and both kinds of switches. perf's software counter also counts
/// migrations, there and back included (with getrusage alone, the core before and after is compared); the kernel must
/// allow it. Faults are not read from perf: a read takes three times as long as getrusage, and counting makes every
/// fault slower, measured ones too.
enum class CauseSource : std::uint8_t { off, getrusage, perf };

struct CauseSettings {
  CauseSource source = CauseSource::off;  ///< the best that may be used
  std::uint64_t above_ns = 0;             ///< latency from which a row names its event's cause
  double ticks_per_ns = 1;
  std::uint32_t floor_call = 0;   ///< ticks
  std::uint32_t floor_touch = 0;  ///< ticks
  double shortest_fault_ns = 0;   ///< of this machine; 0 where that is not known
};

/// The shortest of a few hundred page faults of the cheapest kind, which map the page of zeros. Takes 0.3 ms.
double shortest_fault_ns(double ticks_per_ns);

/// Each thread has one and uses it alone. Allocates nothing. Trivially destructible: the kernel takes the counters back
/// when the process ends.
class CauseReader {
 public:
  /// No page fault is shorter (0.25 us on the fastest machines known), and no switch.
  static constexpr double shortest_ns = 250;
  /// Longer than any stretch of the replayer's own work between two clock reads, and shorter than a switch away and
  /// back or a pause of the host.
  static constexpr double gap_ns = 1'000;
  /// The shortest event for which a pause of the host is looked for. That takes longer than all other counters, and
  /// slows what follows within microseconds (a page fault by 0.1 us). Nearly all known pauses were longer.
  static constexpr double pause_ns = 4'000;

  /// Opens the calling thread's counter; falls back to getrusage where the kernel refuses. Until then it is off. Takes
  /// about 1 ms.
  void open(const CauseSettings& settings);

  /// Renews the base. Two or three system calls, 0.4 us.
  void rebase();

  /// The loop has read the clock between events. Renews the base after a gap.
  [[gnu::always_inline]] void pass(std::uint64_t now) {
    if (now - seen_ > gap_) [[unlikely]] {
      rebase();
    } else {
      seen_ = now;
    }
  }

  /// Whether something timed from `begin` to `end` needs a reading.
  [[nodiscard, gnu::always_inline]] bool wanted(std::uint64_t begin, std::uint64_t end) const {
    return end - begin > limit_ || begin - seen_ > gap_;
  }

  /// The cause:: bits of what happened to the thread since the base, which it renews; never cause::looked. The event
  /// lasted from `begin` to `end`, `fault` is the bit for its minor faults. Takes as long as rebase(), and less than
  /// half of that for an event below `pause_ns`.
  std::uint8_t read(std::uint64_t begin, std::uint64_t end, std::uint8_t fault);

  /// After read(): so long the thread did not run during the event, as far as that is known.
  [[nodiscard]] std::uint64_t lost_ticks() const { return lost_; }

  /// An event ended at `end` and needed no reading.
  [[gnu::always_inline]] void skip(std::uint64_t end) { seen_ = end; }

  /// What the row holds: `bits` when the call and touch took long enough, else 0.
  [[nodiscard]] std::uint8_t for_row(std::uint64_t call, std::uint64_t touch, std::uint8_t bits) {
    if (call + touch < row_from_) [[likely]] {
      return 0;
    }
    if (touch != 0 && call + touch < row_from_ + floor_touch_) return 0;
    ++events_;
    return bits | cause::looked;
  }

  [[nodiscard]] CauseSource source() const { return source_; }
  /// errno of the counter that the kernel refused; 0 when it did not.
  [[nodiscard]] int refused() const { return refused_; }
  /// Events whose rows name a cause.
  [[nodiscard]] std::uint64_t events() const { return events_; }
  /// Nanoseconds of a rebase(): the median of 1,001.
  double measure_cost();

 private:
  struct Counts {
    std::uint64_t minor_faults;
    std::uint64_t major_faults;
    std::uint64_t voluntary;
    std::uint64_t involuntary;
    std::uint64_t migrations;  ///< perf's
    std::uint64_t cpu_ns;      ///< of the thread; stolen time is not in it
    std::uint64_t cpu_ticks;   ///< when that was read, maybe in an earlier reading
    std::uint64_t ticks;       ///< when the others were
    std::uint32_t core;        ///< without perf
  };

  [[nodiscard]] Counts counts_now(bool with_cpu) const;
  void renew_base();

  static constexpr std::uint64_t never = ~std::uint64_t{0};

  std::uint64_t limit_ = never;     ///< ticks from which the counters are read
  std::uint64_t row_from_ = never;  ///< ticks from which a row names a cause
  std::uint64_t gap_ = never;       ///< ticks
  std::uint64_t pause_ = never;     ///< ticks
  std::uint64_t unread_ = 0;        ///< ticks of the slow events since the thread's processor time was last read
  std::uint64_t cpu_lasts_ = 0;     ///< ticks until the thread's processor time is read again
  std::uint64_t longest_ = never;   ///< ticks that reading the counters takes when nothing interrupts it
  std::uint64_t floor_touch_ = 0;   ///< ticks
  std::uint64_t seen_ = 0;          ///< the last clock read between events
  std::uint64_t events_ = 0;
  std::uint64_t lost_ = 0;  ///< ticks, by the last reading
  double ticks_per_ns_ = 1;
  Counts base_{};
  int counter_ = -1;  ///< perf's
  int refused_ = 0;
  CauseSource source_ = CauseSource::off;
};

}  // namespace blockyard::replay
