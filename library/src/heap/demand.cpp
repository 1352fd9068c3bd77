#include "heap/demand.hpp"

#include "heap/bound.hpp"
#include "heap/process_heap.hpp"
#include "heap/settings.hpp"

namespace blockyard::heap {

// A burst in one round may be followed by as large a one before the janitor is back: keep twice the largest recent
// round's. What counts is how far the reserve fell and what it could not serve: what is freed and taken again meanwhile
// needs no more of it. It is forgotten by a half each tick of 16 ms, so that nothing is populated for a load that is over.
void Demand::follow(std::uint64_t now_ns, std::uint64_t lowest_reserve) {
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
  const std::uint64_t run_fall = fallen(reserve_left_, lowest_reserve);
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
  demand_.store(std::max(now, demand_.load(std::memory_order_relaxed) >> std::min<unsigned>(ticks, 63)),
                std::memory_order_relaxed);
}

void Demand::end_round() {
  reserve_left_ = process_heap.pages.reserve_pages();
  slabs_left_ = process_heap.ready_slabs.granules();
}

}  // namespace blockyard::heap
