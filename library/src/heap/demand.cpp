#include "heap/demand.hpp"

#include <utility>

#include "heap/bound.hpp"
#include "heap/process_heap.hpp"
#include "heap/settings.hpp"

namespace blockyard::heap {

namespace {

constexpr std::uint16_t ticks_before_quiet = 62;  // a second

}  // namespace

// A burst in one round may be followed by as large a one before the janitor is back: keep twice the largest recent
// round's. What counts is how far the reserve fell and what it could not serve: what is freed and taken again meanwhile
// needs no more of it. What is to be populated for it is forgotten by a half each tick of 16 ms, so that nothing is
// populated for a load that is over; what is to be kept once it is populated, in 176 ms.
void Demand::follow(std::uint64_t now_ns) {
  // Of a longer round its part: the janitor lets rounds be long where little is taken.
  constexpr std::uint64_t round_ns = 8'000'000;
  const std::uint64_t elapsed = std::max(now_ns - followed_at_, round_ns);
  followed_at_ = now_ns;
  PageHeap& pages = process_heap.pages;
  const std::uint16_t now_tick = process_heap.tick.load(std::memory_order_relaxed);
  const std::uint16_t ticks = static_cast<std::uint16_t>(now_tick - decayed_at_);
  decayed_at_ = now_tick;
  const std::uint64_t consumed = process_heap.slab_pages_taken.load(std::memory_order_relaxed) + pages.pages_taken();
  taken_lately_.store(consumed - consumed_seen_, std::memory_order_relaxed);
  consumed_seen_ = consumed;
  const auto fallen = [](std::uint64_t before, std::uint64_t to) { return before > to ? before - to : 0; };
  const std::uint64_t missed = process_heap.counts.populated_by_program.load(std::memory_order_relaxed);
  const PageHeap::Lowest lowest = pages.take_lowest();
  const std::uint64_t run_fall = fallen(reserve_left_, lowest.reserve);
  const std::uint64_t slab_fall = fallen(slabs_left_, process_heap.ready_slabs.granules()) * pages_per_granule;
  const std::uint64_t now = (run_fall + slab_fall + (missed - missed_seen_)) * round_ns / elapsed;
  missed_seen_ = missed;
  // Of what may be taken before the janitor is woken, or before slabs come from the page heap under its lock.
  const std::uint64_t room = std::max<std::uint64_t>(fallen(reserve_left_, reserve_target() / 2), 1);
  const std::uint64_t slab_room = std::max<std::uint64_t>(settings.ready_slabs * pages_per_granule, 1);
  const std::uint64_t spent = std::max(16 * run_fall / room, 16 * slab_fall / slab_room);
  // Where nothing is left to populate, coming back sooner would not help.
  spent_.store(
      exhausted_.load(std::memory_order_relaxed) ? 0 : static_cast<unsigned>(std::min<std::uint64_t>(spent, 64)),
      std::memory_order_relaxed);
  // A process that was stopped, or a machine that slept, has not been quiet: at most the janitor's longest sleep counts.
  constexpr int longest_sleep_ticks = 16;
  quiet_ticks_ = static_cast<std::uint16_t>(
      now >= PageHeap::reserve_run ? 0 : std::min(quiet_ticks_ + std::min<int>(ticks, longest_sleep_ticks), 0xFFFF));
  constexpr unsigned most_steps = 64;
  Bound<Loop::steps_of_decay> steps(most_steps);
  for (unsigned step = 0; step < std::min<unsigned>(ticks, most_steps) && past_demand_ != 0; ++step) {
    steps.turn();
    past_demand_ -= (past_demand_ + 15) / 16;
  }
  past_demand_ = std::max(now, past_demand_);
  // Where blocks come and go, the run that they are cut from is never old, but what of it nobody needed for so long is.
  lowest_now_ = {std::min(lowest_now_.reserve, lowest.reserve), std::min(lowest_now_.ready, lowest.ready)};
  if (static_cast<std::uint16_t>(now_tick - lowest_since_) >= settings.purge_ms / 16) {
    lowest_since_ = now_tick;
    lowest_before_ = std::exchange(lowest_now_, lowest);
  }
  demand_.store(std::max(now, demand_.load(std::memory_order_relaxed) >> std::min<unsigned>(ticks, 63)),
                std::memory_order_relaxed);
}

void Demand::end_round() {
  process_heap.pages.take_lowest();
  reserve_left_ = process_heap.pages.reserve_pages();
  slabs_left_ = process_heap.ready_slabs.granules();
}

// Free pages that are not given back, of those in runs long enough for the reserve. While the program comes and goes: a
// seventh of what is in use less 10 MiB and the shorter runs, since populating again what was given back a moment ago is
// the janitor's dearest work, and more would not leave resident within a quarter above what lives, of which rounding,
// tables, slabs cut in advance and blocks at hand take their part. Once it has taken little for a second: the reserve,
// and an eighth of what is in use beyond 112 MiB.
std::uint64_t Demand::kept_free(std::uint64_t used, std::uint64_t in_short_runs) const {
  const std::uint64_t target = reserve_target();
  if (quiet_ticks_ >= ticks_before_quiet) {
    return target + kept_of(used, in_short_runs);
  }
  return std::max({target, reserve_for(past_demand_), kept_of(used, in_short_runs)});
}

std::uint64_t Demand::kept_of(std::uint64_t used, std::uint64_t in_short_runs) const {
  constexpr std::uint64_t none_while_quiet = 56 * pages_per_chunk;
  if (quiet_ticks_ >= ticks_before_quiet) {
    return used > none_while_quiet ? (used - none_while_quiet) / 8 : 0;
  }
  const std::uint64_t other = 5 * pages_per_chunk + in_short_runs;
  return used / 7 > other ? used / 7 - other : 0;
}

// Of all ready pages, in runs of any length and in slabs cut in advance, those that nobody needed for a purge age, beyond
// the reserve, as much as was ever needed at once of late, and what a program that comes and goes has kept for it. Which
// pages they are is all the same: what each frame takes and frees is merged and cut anew each time, and so never old.
std::uint64_t Demand::never_needed(std::uint64_t used) const {
  const std::uint64_t least = std::min(lowest_before_.ready, lowest_now_.ready) + slabs_left_ * pages_per_granule;
  const std::uint64_t kept = std::max({settings.reserve_bytes >> page_shift,
                                       reserve_floor_.load(std::memory_order_relaxed), past_demand_, kept_of(used, 0)});
  return least > kept ? least - kept : 0;
}

void Demand::count_given_back(std::uint64_t ready) {
  for (PageHeap::Lowest* lowest : {&lowest_before_, &lowest_now_}) {
    lowest->ready -= std::min(lowest->ready, ready);
  }
}

}  // namespace blockyard::heap
