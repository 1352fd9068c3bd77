/// What of HashSlots need not be inlined; libblockyard has it for near links.
#ifndef BLOCKYARD_HASH_SLOTS_IMPL_HPP
#define BLOCKYARD_HASH_SLOTS_IMPL_HPP

#include <cstring>
#include <utility>

#include "blockyard/hash_slots.hpp"

namespace blockyard::container {

template <class Link>
void HashSlots<Link>::insert(std::uint32_t hash, Link link) noexcept {
  std::uint32_t position = home(hash);
  for (std::uint32_t distance = 0;; ++distance) {
    const Slot& slot = slots_[position];
    if (!slot.link) {
      slots_[position] = {hash, link};
      return;
    }
    if (distance_of(slot.hash, position) < distance) {
      break;
    }
    position = after(position);
  }
  // Everything from here to the next free slot moves one to the right.
  Slot carried{hash, link};
  while (slots_[position].link) {
    std::swap(carried, slots_[position]);
    position = after(position);
  }
  slots_[position] = carried;
}

template <class Link>
void HashSlots<Link>::erase(std::uint32_t position) noexcept {
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
bool HashSlots<Link>::reserve(std::size_t entries) noexcept {
  if (entries <= limit() && slots_ != nullptr) {
    return true;
  }
  // Powers of two and one and a half of them: at worst a third of the slots beyond the limit is unused.
  std::uint64_t capacity = 8;
  while (capacity - capacity / 8 < entries) {
    const bool power = (capacity & (capacity - 1)) == 0;
    capacity = power ? capacity / 2 * 3 : capacity / 3 * 4;
  }
  if (capacity > none) {
    return false;
  }
  Slot* const slots = static_cast<Slot*>(array_allocate(static_cast<std::size_t>(capacity) * sizeof(Slot)));
  if (slots == nullptr) {
    return false;
  }
  HashSlots larger;
  larger.slots_ = slots;
  larger.capacity_ = static_cast<std::uint32_t>(capacity);
  // From a slot at its home on, entries come in the order of their homes, and so they go.
  std::uint32_t begin = 0;
  const std::uint32_t old = this->capacity();
  while (begin < old && slots_[begin].link && distance_of(slots_[begin].hash, begin) != 0) {
    ++begin;
  }
  for (std::uint32_t i = 0; i < old; ++i) {
    const std::uint32_t position = begin + i < old ? begin + i : begin + i - old;
    if (slots_[position].link) {
      larger.insert(slots_[position].hash, slots_[position].link);
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
