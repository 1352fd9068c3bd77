#include "heap/depot.hpp"

#include "heap/region.hpp"
#include "heap/thread_heap.hpp"

namespace blockyard::heap {

constinit Depot depot;

void Depot::initialise() {
  std::uint32_t index = 0;
  for (unsigned size_class = 0; size_class < classes; ++size_class) {
    for (std::uint32_t each = 0; each < magazines_of(size_class); ++each) {
      ++index;
      touch_without_change(&magazines_[index]);
      Shelves<>::give_empty(corners_[size_class], each % corner_count, index, link_);
    }
  }
}

bool Depot::drain(std::uint16_t tick, bool all, std::uint32_t most) {
  std::uint32_t drained = 0;
  for (unsigned size_class = 0; size_class < classes && drained < most; ++size_class) {
    Demand& demand = demand_[size_class];
    if (!all && is_wanted(demand, tick)) {
      continue;
    }
    if (!all && demand.wanted_at.load(std::memory_order_relaxed) != 0) {
      demand.wanted_at.store(0, std::memory_order_relaxed);  // not wanted again when the tick has gone round
    }
    while (drained < most) {
      const std::uint32_t index = Shelves<>::take_full(corners_[size_class], demand.filled, 0, link_);
      if (index == 0) {
        Shelves<>::found_none(demand.filled);
        break;
      }
      for (std::uint32_t each = 0; each < blocks_of(size_class); ++each) {
        void* const block = magazines_[index].blocks[each];
        free_remote(nullptr, block, static_cast<std::uint32_t>(region.granule_of(block)));
      }
      Shelves<>::give_empty(corners_[size_class], index % corner_count, index, link_);
      ++drained;
    }
  }
  return drained != 0;
}

template <class Visit>
void Depot::for_each_full(Visit&& visit) const {
  for (unsigned size_class = 0; size_class < classes; ++size_class) {
    for (const Shelves<>::Corner& corner : corners_[size_class]) {
      std::uint32_t index = corner.full.newest();
      for (std::uint32_t seen = 0; index != 0 && seen < magazines_of(size_class); ++seen) {
        visit(size_class, magazines_[index]);
        index = magazines_[index].next.load(std::memory_order_relaxed);
      }
    }
  }
}

std::uint64_t Depot::bytes() const {
  std::uint64_t bytes = 0;
  for_each_full([&](unsigned size_class, const Magazine&) {
    bytes += std::uint64_t{blocks_of(size_class)} * class_bytes(size_class);
  });
  return bytes;
}

const char* Depot::check() const {
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
