// Why an event was slow: what the kernel counted on its thread meanwhile.
//
// The counters are read after an event that was slow, and compared with a *base*: what they were when last read. So an
// event that is fast costs two comparisons and no system call, and everything rests on the base being fresh: nothing
// that happened before an event may be charged to it. What could make it stale, and why it does not:
//
// - A page fault in a fast event. There is none: a fault takes longer than `shortest_ns` and than half of the shortest
//   of a few hundred that the run made itself, and after whatever took that long the counters are read, whether or not
//   the event is slow enough to be told about. (An event that is slow enough and shorter than that did its own work: no
//   look is needed to know.)
// - The pacer's sleeps, waits for another thread, a look: the base is taken anew behind each.
// - A preemption, migration or pause of the host while the thread spins or does the replayer's own work. All of them
//   are gaps in the clock, and the loop reads the clock all the time: where two reads lie further apart than `gap_ns`,
//   the base is taken anew. Where such a gap lies directly before a slow event, or inside the look after it, or where
//   the event was shorter than any switch, what the machine did can't be the event's for certain: it gets no machine's
//   cause, and stays the allocator's, which is the stricter error.
// - The replayer's own page faults. There are none once the clock runs.
//
// What no counter tells: interrupts that switch to no other thread (the kernel's timer, a network card, 1 to 15 us
// each), and what a host does to its guest without calling it stolen time. They stay in the allocator's figures;
// `null`, which does nothing, shows how much that is.
#pragma once

#include <cstdint>

#include "samples/row.hpp"

namespace blockyard::replay {

namespace cause = samples::cause;

/// Where the counts come from. getrusage tells faults and both kinds of switches. perf's software counter tells
/// migrations besides, there and back included (getrusage's stand-in is the core before and after); the kernel must
/// allow it. Faults are not asked of perf: a read takes three times as long as getrusage, and counting makes every fault
/// slower, the measured ones too.
enum class LookSource : std::uint8_t { off, getrusage, perf };

struct LookSettings {
  LookSource source = LookSource::off;  ///< the best that may be used
  std::uint64_t above_ns = 0;           ///< latency from which an event carries its cause
  double ticks_per_ns = 1;
  std::uint32_t floor_call = 0;   ///< ticks
  std::uint32_t floor_touch = 0;  ///< ticks
  double shortest_fault_ns = 0;   ///< of this machine; 0 where that is not known
};

/// The shortest of a few hundred page faults of the cheapest kind, which find the page of zeros: 0.3 ms.
double shortest_fault_ns(double ticks_per_ns);

/// One a thread, used on that thread alone. Allocates nothing. Trivially destructible: the kernel takes the counters
/// back when the process ends.
class Looker {
 public:
  /// No page fault (0.4 us where this was measured, 0.25 us on the fastest machines known) and no switch is shorter.
  static constexpr double shortest_ns = 250;
  /// Longer than any stretch of the replayer's own work between two clock reads; a switch away and back, or a pause of
  /// the host, takes longer.
  static constexpr double gap_ns = 1'000;
  /// The shortest event that is told a pause of the host: to ask costs more than all else, and what follows within
  /// microseconds pays for it (a page fault 0.1 us). Of the pauses known, nearly all were longer.
  static constexpr double pause_ns = 4'000;

  /// Opens the calling thread's counter; what the kernel refuses falls back to getrusage. Until then, off. About
  /// 1 ms.
  void open(const LookSettings& settings);

  /// Takes the base anew. Two or three system calls, 0.4 us.
  void rebase();

  /// The loop has read the clock between events. Takes the base anew when it had stood still for longer than it should.
  [[gnu::always_inline]] void pass(std::uint64_t now) {
    if (now - seen_ > gap_) [[unlikely]] {
      rebase();
    } else {
      seen_ = now;
    }
  }

  /// Whether something timed from `begin` to `end` must be looked at.
  [[nodiscard, gnu::always_inline]] bool wanted(std::uint64_t begin, std::uint64_t end) const {
    return end - begin > limit_ || begin - seen_ > gap_;
  }

  /// What happened to the thread since the base; takes it anew. The event lasted from `begin` to `end`, `fault` is the
  /// bit for its minor faults. Without cause::looked. Costs a rebase() at most, less than half of it for an event below
  /// `pause_ns`.
  std::uint8_t look(std::uint64_t begin, std::uint64_t end, std::uint8_t fault);

  /// An event was over at `end`, unlooked at.
  [[gnu::always_inline]] void over(std::uint64_t end) { seen_ = end; }

  /// What the row says: `bits` of an event whose call and touch took so many ticks; 0 when that was fast.
  [[nodiscard]] std::uint8_t told(std::uint64_t call, std::uint64_t touch, std::uint8_t bits) {
    if (call + touch < told_from_) [[likely]] {
      return 0;
    }
    if (touch != 0 && call + touch < told_from_ + floor_touch_) return 0;
    ++events_;
    return bits | cause::looked;
  }

  [[nodiscard]] LookSource source() const { return source_; }
  /// errno of the counters that the kernel refused; 0 when it didn't.
  [[nodiscard]] int refused() const { return refused_; }
  /// Events that carry their cause.
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
    std::uint64_t cpu_ticks;   ///< when that was read, maybe in an earlier look
    std::uint64_t ticks;       ///< when the others were
    std::uint32_t core;        ///< without perf
  };

  [[nodiscard]] Counts read(bool with_cpu) const;
  bool take();

  static constexpr std::uint64_t never = ~std::uint64_t{0};

  std::uint64_t limit_ = never;      ///< ticks from which the counters are read
  std::uint64_t told_from_ = never;  ///< ticks from which a row tells
  std::uint64_t gap_ = never;        ///< ticks
  std::uint64_t pause_ = never;      ///< ticks
  std::uint64_t unread_ = 0;         ///< ticks of the slow events since the thread's processor time was last read
  std::uint64_t cpu_lasts_ = 0;      ///< ticks until the thread's processor time is read again
  std::uint64_t longest_ = never;    ///< ticks that reading the counters takes when nothing interrupts it
  std::uint64_t floor_touch_ = 0;    ///< ticks
  std::uint64_t seen_ = 0;           ///< the last clock read between events
  std::uint64_t events_ = 0;
  double ticks_per_ns_ = 1;
  Counts base_{};
  int counter_ = -1;  ///< perf's
  int refused_ = 0;
  LookSource source_ = LookSource::off;
};

}  // namespace blockyard::replay
