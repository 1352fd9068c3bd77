#include "heap/demand.hpp"

namespace blockyard::heap {

// A burst in one round may be followed by one as large before the janitor is back: the reserve is twice the largest
// recent round's. What counts is how far the reserve fell and what it could not serve: what is freed and taken again
// meanwhile needs no more of it. Half of it is forgotten each tick, so that nothing is populated for a load that is
// over.
void Demand::follow(const Seen& seen) {
  // Of a longer round its part: the janitor lets rounds be long where little is taken.
  constexpr std::uint64_t round_ns = 8'000'000;
  const std::uint64_t elapsed = std::max(seen.now_ns - followed_at_, round_ns);
  followed_at_ = seen.now_ns;
  const auto ticks = static_cast<std::uint16_t>(seen.tick - decayed_at_);
  decayed_at_ = seen.tick;
  taken_last_round_ = seen.taken - taken_seen_;
  taken_seen_ = seen.taken;
  const auto fallen = [](std::uint64_t before, std::uint64_t to) { return before > to ? before - to : 0; };
  const std::uint64_t run_fall = fallen(reserve_left_, seen.lowest_reserve);
  const std::uint64_t slab_fall = fallen(slabs_left_, seen.ready_slabs);
  const std::uint64_t now = (run_fall + slab_fall + (seen.missed - missed_seen_)) * round_ns / elapsed;
  missed_seen_ = seen.missed;
  // Of what may be taken before the janitor is woken, or before slabs come from the page heap under its lock.
  const std::uint64_t room = std::max<std::uint64_t>(fallen(reserve_left_, reserve_target() / 2), 1);
  const std::uint64_t slab_room = std::max<std::uint64_t>(settings.ready_slabs * pages_per_slice, 1);
  const std::uint64_t spent = std::max(16 * run_fall / room, 16 * slab_fall / slab_room);
  // Where nothing is left to populate, coming back sooner would not help.
  spent_ = exhausted_.load(std::memory_order_relaxed) ? 0 : static_cast<unsigned>(std::min<std::uint64_t>(spent, 64));
  demand_.store(std::max(now, demand_.load(std::memory_order_relaxed) >> std::min<unsigned>(ticks, 63)),
                std::memory_order_relaxed);
}

}  // namespace blockyard::heap
