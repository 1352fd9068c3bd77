#include "heap/sweep.hpp"

#include <algorithm>
#include <utility>

#include "heap/heap_contents.hpp"
#include "heap/remote_frees.hpp"
#include "heap/settings.hpp"

namespace blockyard::heap {

namespace {

constexpr std::uint32_t most_a_round = 16;  // heaps, and magazines

}  // namespace

bool drain(Depot& depot, std::uint16_t tick, bool all, std::uint32_t most) {
  return depot.drain(tick, all, most, [](void* block) { free_remote(block); });
}

bool Sweep::run(HeapTable& heaps, Depot& depot, std::uint16_t tick) {
  constexpr std::uint32_t most_adopted = 64;        // of one heap
  constexpr std::uint16_t parked_before_flush = 8;  // ticks: an eighth of a second
  bool flushed = false;
  bool more = drain(depot, tick, false, most_a_round);
  for (std::uint32_t turn = 0; turn < most_a_round; ++turn) {
    ThreadHeap* const heap = heaps.take_to_sweep();
    if (heap == nullptr) {
      drain_for_parked(depot, tick);
      break;
    }
    if (const std::uint32_t adopted = adopt_pending(heap, most_adopted); adopted != 0) {
      heap->needs_flush = true;
      more |= adopted == most_adopted;
    }
    // One heap a round, and none that was in use a moment ago: while it is swept, a thread that begins cannot have it.
    if (heap->needs_flush && !flushed && static_cast<std::uint16_t>(tick - heap->parked_at) >= parked_before_flush) {
      flush(heap);
      heap->needs_flush = false;
      flushed = true;
    }
    slabs_ += heap->slabs;
    heaps.park(heap);
  }
  heaps.keep_spare_heaps();
  return more || flushed;
}

// At the end of a turn. A block whose thread has ended, and which the others hand to one another by way of the depot in
// each frame, is never free to its slab, and may be all that a freed level has left in it. So while parked heaps have
// slabs the depot is drained each purge time, and less often where they lose none by it.
void Sweep::drain_for_parked(Depot& depot, std::uint16_t tick) {
  const auto shortest_wait = static_cast<std::uint16_t>(std::min<std::uint32_t>(settings.purge_ms / 16, 1'000));
  const auto longest_wait = static_cast<std::uint16_t>(32 * shortest_wait);
  const std::uint32_t slabs = std::exchange(slabs_, 0);
  if (slabs < slabs_before_ - slabs_before_ / 8) {
    wait_ = shortest_wait;
    slabs_before_ = slabs;
  }
  if (slabs != 0 && static_cast<std::uint16_t>(tick - drained_at_) >= wait_) {
    drain(depot, tick, true, 16 * most_a_round);
    drained_at_ = tick;
    wait_ = std::clamp<std::uint16_t>(2 * wait_, shortest_wait, longest_wait);
    slabs_before_ = slabs;
  }
}

}  // namespace blockyard::heap
