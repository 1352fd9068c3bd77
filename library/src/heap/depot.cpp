#include "heap/depot.hpp"

#include "heap/region.hpp"
#include "heap/thread_heap.hpp"

namespace blockyard::heap {

constinit Depot depot;

void Depot::initialise() {
  for (Ends& each : ends_) {
    touch_without_change(&each);
  }
  for (Magazine& each : magazines_) {
    touch_without_change(&each);
  }
}

bool Depot::drain(std::uint16_t tick, bool all, std::uint32_t most) {
  std::uint32_t drained = 0;
  Bound<Loop::magazines_drained> magazines(most);
  for (unsigned size_class = 0; size_class < classes && drained < most; ++size_class) {
    Givers& givers = ends_[size_class].givers;
    if (!all) {
      if (is_wanted(givers, tick)) {
        continue;
      }
      if (givers.wanted_at.load(std::memory_order_relaxed) != 0) {
        givers.wanted_at.store(0, std::memory_order_relaxed);  // not wanted again when the tick has gone round
      }
    }
    const auto free_blocks = [&](std::uint64_t place) {
      Bound<Loop::blocks_of_magazine> blocks(most_at_hand / 2);
      for (std::uint32_t each = 0; each < blocks_of(size_class); ++each) {
        blocks.turn();
        void* const block = magazine(size_class, place).blocks[each];
        free_remote(nullptr, block, static_cast<std::uint32_t>(region.granule_of(block)));
      }
    };
    while (drained < most &&
           Ring::take(ends_[size_class].takers.taken, shift(size_class), Turns{*this, size_class}, free_blocks)) {
      magazines.turn();
      ++drained;
    }
  }
  return drained != 0;
}

void Depot::mend_in_child() {
  for (unsigned size_class = 0; size_class < classes; ++size_class) {
    Ends& its = ends_[size_class];
    if (its.givers.given.load(std::memory_order_relaxed) != 0) {
      Ring::mend(its.givers.given, its.takers.taken, shift(size_class), Turns{*this, size_class},
                 [&](std::uint64_t from, std::uint64_t to) {
                   magazine(size_class, to).blocks = magazine(size_class, from).blocks;
                 });
    }
  }
}

template <class Visit>
void Depot::for_each_full(Visit&& visit) {
  for (unsigned size_class = 0; size_class < classes; ++size_class) {
    const Ends& its = ends_[size_class];
    Ring::for_each_full(its.givers.given, its.takers.taken, shift(size_class), Turns{*this, size_class},
                        [&](std::uint64_t place) { visit(size_class, magazine(size_class, place)); });
  }
}

std::uint64_t Depot::bytes() {
  std::uint64_t bytes = 0;
  for_each_full([&](unsigned size_class, const Magazine&) {
    bytes += std::uint64_t{blocks_of(size_class)} * class_bytes(size_class);
  });
  return bytes;
}

const char* Depot::check() {
  const char* broken = nullptr;
  for_each_full([&](unsigned size_class, const Magazine& magazine) {
    for (std::uint32_t each = 0; each < blocks_of(size_class); ++each) {
      if (const char* const wrong = check_handed_over(magazine.blocks[each], size_class); wrong != nullptr) {
        broken = wrong;
      }
    }
  });
  return broken;
}

}  // namespace blockyard::heap
