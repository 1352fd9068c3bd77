// Many blocks at once, for tests of heap.h.
#pragma once

#include <cstddef>
#include <vector>

#include "blockyard/heap.h"

inline std::vector<void*> allocated(std::size_t count, std::size_t size) {
  std::vector<void*> blocks(count);
  for (void*& block : blocks) {
    block = by_malloc(size);
  }
  return blocks;
}

inline void free_all(const std::vector<void*>& blocks) {
  for (void* const block : blocks) {
    by_free(block);
  }
}
