#include "checks/watched.hpp"

namespace blockyard::checks {

const base::Observer* listener() {
#if BLOCKYARD_OBSERVED
  static const base::Observer* const observer = base::block_observer();
  return observer;
#else
  return nullptr;
#endif
}

void announce_allocated(const void* block, std::size_t size, std::size_t alignment) {
  if (const base::Observer* const heard = listener()) {
    heard->block_allocated(block, size, alignment);
  }
}

void announce_freed(const void* block) {
  if (const base::Observer* const heard = listener()) {
    heard->block_freed(block);
  }
}

}  // namespace blockyard::checks
