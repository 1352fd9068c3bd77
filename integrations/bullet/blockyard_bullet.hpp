/// Bullet on Blockyard's heap. Before Bullet makes its first object:
///
///   blockyard::bullet_install();
///
/// Bullet's blocks have the tag "bullet" below the tags of the thread.
#ifndef BLOCKYARD_BULLET_HPP
#define BLOCKYARD_BULLET_HPP

#include <cstddef>

#include <LinearMath/btAlignedAllocator.h>

#include "blockyard/heap.h"
#include "blockyard/tag.hpp"

namespace blockyard {

inline void* bullet_allocate(std::size_t size, int alignment) {
  const tag bullet("bullet");
  return by_aligned_alloc(static_cast<std::size_t>(alignment), size);
}

inline void bullet_free(void* block) {
  const tag bullet("bullet");
  by_free(block);
}

/// Both pairs of functions: Bullet asks for all it has through the one with an alignment, and programs may call either.
inline void bullet_install() {
  btAlignedAllocSetCustom([](std::size_t size) { return bullet_allocate(size, 16); }, bullet_free);
  btAlignedAllocSetCustomAligned(bullet_allocate, bullet_free);
}

}  // namespace blockyard
#endif
