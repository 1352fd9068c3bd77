/// What of NumberIndex need not be inlined; libblockyard has it for near links.
#ifndef BLOCKYARD_DETAIL_NUMBER_INDEX_IMPL_HPP
#define BLOCKYARD_DETAIL_NUMBER_INDEX_IMPL_HPP

#include <algorithm>
#include <cstring>
#include <utility>

#include "blockyard/detail/number_index.hpp"

namespace blockyard::container {

template <class Link>
bool NumberIndex<Link>::grow(std::size_t size, Key key, Walk walk) noexcept {
  if (is_dense()) {
    return extend(size, key) || to_slots(size + 1);
  }
  return densify(size + 1, 0, Range{key, key}, walk) || slots_.reserve(size + 1);
}

template <class Link>
bool NumberIndex<Link>::reserve(std::size_t entries, Walk walk) noexcept {
  if (is_dense()) {
    if (entries > dense_->allocated && !move_to(entries, dense_->base)) {
      return false;
    }
    dense_->reserved = std::max(dense_->reserved, std::uint64_t{entries});
    return true;
  }
  return entries <= slots_.limit() || densify(entries, entries, Range(), walk) || slots_.reserve(entries);
}

template <class Link>
bool NumberIndex<Link>::densify(std::size_t entries, std::uint64_t reserved, Range range, Walk walk) noexcept {
  const std::uint64_t longest = longest_for(entries);
  Key key = 0;
  Link link;
  for (const void* node = walk.node; node != nullptr;) {
    node = walk.step(node, key, link);
    range.include(key);
    if (range.span() > longest) {
      return false;  // scattered keys are found out within the first few
    }
  }
  Dense* const dense = range.span() > longest ? nullptr : allocate(std::max(range.span() * 2, reserved));
  if (dense == nullptr) {
    return false;
  }
  dense->base = range.least;
  dense->extent = static_cast<std::uint32_t>(range.span());
  dense->reserved = reserved;
  for (const void* node = walk.node; node != nullptr;) {
    node = walk.step(node, key, link);
    dense->links()[key - dense->base] = link;
  }
  slots_.release();
  dense_ = dense;
  return true;
}

template <class Link>
bool NumberIndex<Link>::extend(std::size_t size, Key key) noexcept {
  Dense* const dense = dense_;
  while (dense->extent != 0 && !dense->links()[dense->extent - 1]) {
    --dense->extent;
  }
  if (dense->extent == 0) {
    dense->base = key;
  }
  Range range{key, key};
  if (dense->extent != 0) {
    range.include(dense->base);
    range.include(dense->base + (dense->extent - 1));
  }
  const std::uint64_t span = range.span();
  if (span > dense->allocated) {
    if (span > longest_for(std::max(std::uint64_t{size} + 1, dense->reserved)) || span > greatest_length) {
      return false;
    }
    // Twice as long, so that a link moves O(1) times. Room below where keys fall.
    const std::uint64_t length = std::min(span * 2, greatest_length);
    const std::uint64_t below = key < dense->base ? std::min(range.least, (length - span) / 2) : 0;
    return move_to(length, range.least - below) && extend(size, key);
  }
  if (key < dense->base) {
    // Also with room below, for the same reason.
    const std::uint64_t distance = (dense->base - key) + std::min((dense->allocated - span) / 2, key);
    Link* const links = dense->links();
    std::memmove(static_cast<void*>(links + distance), links, dense->extent * sizeof(Link));
    std::memset(static_cast<void*>(links), 0, std::min<std::uint64_t>(distance, dense->extent) * sizeof(Link));
    dense->extent += static_cast<std::uint32_t>(distance);
    dense->base -= distance;
  } else {
    // Some at a time: clear() goes over the extent, and need not touch memory that never was.
    const std::uint64_t extent = std::max(span + 63, span + span / 16);
    dense->extent = static_cast<std::uint32_t>(std::min<std::uint64_t>(extent, dense->allocated));
  }
  return true;
}

template <class Link>
bool NumberIndex<Link>::move_to(std::uint64_t links, Key base) noexcept {
  Dense* const longer = allocate(links);
  if (longer == nullptr) {
    return false;
  }
  const Key distance = dense_->base - base;
  longer->base = base;
  longer->extent = static_cast<std::uint32_t>(dense_->extent + distance);
  longer->reserved = dense_->reserved;
  std::memcpy(static_cast<void*>(longer->links() + distance), dense_->links(), dense_->extent * sizeof(Link));
  free(std::exchange(dense_, longer));
  return true;
}

template <class Link>
bool NumberIndex<Link>::to_slots(std::size_t entries) noexcept {
  if (!slots_.reserve(std::max(std::uint64_t{entries}, dense_->reserved))) {
    return false;
  }
  for (std::uint32_t i = 0; i < dense_->extent; ++i) {
    if (const Link link = dense_->links()[i]; link) {
      slots_.insert(Slots::mix(dense_->base + i), link);
    }
  }
  free(std::exchange(dense_, nullptr));
  return true;
}

template <class Link>
typename NumberIndex<Link>::Dense* NumberIndex<Link>::allocate(std::uint64_t links) noexcept {
  constexpr std::uint64_t least = 32;
  links = std::max(links, least);
  if (links > greatest_length) {
    return nullptr;
  }
  void* const memory = array_allocate(sizeof(Dense) + links * sizeof(Link));
  return memory == nullptr ? nullptr : ::new (memory) Dense{0, 0, static_cast<std::uint32_t>(links), 0};
}

template <class Link>
void NumberIndex<Link>::free(Dense* dense) noexcept {
  array_free(dense, sizeof(Dense) + dense->allocated * sizeof(Link));
}

template <class Link>
void NumberIndex<Link>::clear() noexcept {
  if (is_dense()) {
    std::memset(static_cast<void*>(dense_->links()), 0, dense_->extent * sizeof(Link));
  } else {
    slots_.clear();
  }
}

template <class Link>
void NumberIndex<Link>::release() noexcept {
  slots_.release();
  if (is_dense()) {
    free(std::exchange(dense_, nullptr));
  }
}

template <class Link>
bool NumberIndex<Link>::invariants_hold(std::size_t entries) const noexcept {
  if (!is_dense()) {
    return slots_.invariants_hold(entries);
  }
  std::size_t count = 0;
  for (std::uint32_t i = 0; i < dense_->extent; ++i) {
    count += dense_->links()[i] ? std::size_t{1} : 0;
  }
  return count == entries && dense_->extent <= dense_->allocated && slots_.capacity() == 0;
}

/// The type that near indices of every map share: links are untyped inside.
extern template class BY_API NumberIndex<NearLink<void>>;

}  // namespace blockyard::container

#endif
