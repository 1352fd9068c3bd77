/// What of HashSlots need not be inlined; libblockyard has it for near links.
#ifndef BLOCKYARD_DETAIL_HASH_SLOTS_IMPL_HPP
#define BLOCKYARD_DETAIL_HASH_SLOTS_IMPL_HPP

#include <algorithm>
#include <cstring>
#include <utility>

#include "blockyard/detail/hash_slots.hpp"

namespace blockyard::container {

template <class Link>
void HashSlots<Link>::insert(std::uint32_t hash, Link link) noexcept {
  insert_at(find_place(hash, [](Link) { return false; }), hash, link);
}

template <class Link>
void HashSlots<Link>::displace(Slot* slot, std::uint32_t hash, Link link) noexcept {
  std::uint32_t position = static_cast<std::uint32_t>(slot - slots_);
  Slot carried{hash, link};
  do {
    std::swap(carried, slots_[position]);
    position = after(position);
  } while (slots_[position].link);
  slots_[position] = carried;
}

template <class Link>
void HashSlots<Link>::erase(Place place) noexcept {
  std::uint32_t position = static_cast<std::uint32_t>(slot_of(place.link) - slots_);
  for (;;) {
    const std::uint32_t next = after(position);
    const Slot& following = slots_[next];
    if (!following.link || distance_of(following.hash, next) == 0) {
      slots_[position] = {};
      return;
    }
    slots_[position] = following;
    position = next;
  }
}

template <class Link>
std::uint32_t HashSlots<Link>::capacity_for(std::size_t entries) noexcept {
  // Powers of two and one and a half of them: at worst a third of the slots beyond the limit is unused.
  constexpr std::uint32_t greatest_capacity = std::uint32_t{3} << 30;
  std::uint32_t capacity = least_capacity;
  while (limit_of(capacity) < entries) {
    if (capacity == greatest_capacity) {
      return 0;
    }
    const bool power = (capacity & (capacity - 1)) == 0;
    capacity = power ? capacity / 2 * 3 : capacity / 3 * 4;
  }
  return capacity;
}

template <class Link>
bool HashSlots<Link>::reserve(std::size_t entries) noexcept {
  if (entries <= limit() && slots_ != nullptr) {
    return true;
  }
  const std::uint32_t capacity = capacity_for(entries);
  if (capacity == 0) {
    return false;
  }
  Slot* const slots = static_cast<Slot*>(array_allocate(std::size_t{capacity} * sizeof(Slot)));
  if (slots == nullptr) {
    return false;
  }
  HashSlots larger;
  larger.slots_ = slots;
  larger.capacity_ = capacity;
  // Behind those that came round from the end, entries lie in the order of their homes, and so they go.
  std::uint32_t begin = 0;
  const std::uint32_t old = this->capacity();
  while (begin < old && slots_[begin].link && home(slots_[begin].hash) > begin) {
    ++begin;
  }
  // Most go to their home or behind the one before, without a search. Entries of one home may have lain in any order:
  // one that belongs before another is inserted, and so is what passes the end.
  std::uint32_t next = 0;
  std::uint32_t greatest = 0;
  for (std::uint32_t i = 0; i < old; ++i) {
    const Slot slot = slots_[begin + i < old ? begin + i : begin + i - old];
    if (!slot.link) {
      continue;
    }
    const std::uint32_t position = std::max(next, larger.home(slot.hash));
    if (slot.hash >= greatest && position < larger.capacity_) [[likely]] {
      slots[position] = slot;
      next = position + 1;
      greatest = slot.hash;
    } else {
      larger.insert(slot.hash, slot.link);
      next += next < larger.capacity_ && slots[next].link;
    }
  }
  swap(larger);
  return true;
}

template <class Link>
void HashSlots<Link>::clear() noexcept {
  if (slots_ != nullptr) {
    std::memset(static_cast<void*>(slots_), 0, std::size_t{capacity_} * sizeof(Slot));
  }
}

template <class Link>
void HashSlots<Link>::release() noexcept {
  if (slots_ != nullptr) {
    array_free(slots_, std::size_t{capacity_} * sizeof(Slot));
    slots_ = nullptr;
    capacity_ = 0;
  }
}

template <class Link>
std::uint32_t HashSlots<Link>::longest_search() const noexcept {
  std::uint32_t longest = 0;
  for (std::uint32_t position = 0; position < capacity(); ++position) {
    if (slots_[position].link) {
      longest = std::max(longest, distance_of(slots_[position].hash, position) + 1);
    }
  }
  return longest;
}

template <class Link>
bool HashSlots<Link>::invariants_hold(std::size_t entries) const noexcept {
  std::size_t count = 0;
  for (std::uint32_t position = 0; position < capacity(); ++position) {
    const Slot& slot = slots_[position];
    if (!slot.link) {
      continue;
    }
    ++count;
    // One step to the right a slot may be one farther from home, no more, and only behind an entry.
    const std::uint32_t before = position == 0 ? capacity_ - 1 : position - 1;
    const std::uint32_t distance = distance_of(slot.hash, position);
    if (distance != 0 && (!slots_[before].link || distance_of(slots_[before].hash, before) + 1 < distance)) {
      return false;
    }
  }
  return count == entries && count <= limit();
}

/// The type that near slots of every map share: links are untyped inside.
using NearSlots = HashSlots<NearLink<void>>;
extern template class BY_API HashSlots<NearLink<void>>;

}  // namespace blockyard::container

#endif
