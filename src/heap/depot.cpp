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
      shelves_[size_class].empty.push(index, link_);
    }
  }
}

bool Depot::drain(std::uint16_t tick, bool all, std::uint32_t most) {
  std::uint32_t drained = 0;
  for (unsigned size_class = 0; size_class < classes && drained < most; ++size_class) {
    Shelf& shelf = shelves_[size_class];
    if (!all && is_wanted(shelf, tick)) {
      continue;
    }
    if (!all) {
      shelf.wanted_at.store(0, std::memory_order_relaxed);  // not wanted again when the tick has gone round
    }
    while (drained < most) {
      const std::uint32_t index = shelf.full.pop(link_);
      if (index == 0) {
        break;
      }
      for (std::uint32_t each = 0; each < blocks_of(size_class); ++each) {
        void* const block = magazines_[index].blocks[each];
        free_remote(nullptr, block, static_cast<std::uint32_t>(region.granule_of(block)));
      }
      shelf.empty.push(index, link_);
      ++drained;
    }
  }
  return drained != 0;
}

template <class Visit>
void Depot::for_each_full(Visit&& visit) const {
  for (unsigned size_class = 0; size_class < classes; ++size_class) {
    std::uint32_t index = shelves_[size_class].full.newest();
    for (std::uint32_t seen = 0; index != 0 && seen < magazines_of(size_class); ++seen) {
      visit(size_class, magazines_[index]);
      index = link_.next[index].load(std::memory_order_relaxed);
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
