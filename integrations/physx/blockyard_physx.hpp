/// PhysX on Blockyard's heap:
///
///   static blockyard::PhysXAllocator allocator;
///   PxCreateFoundation(PX_PHYSICS_VERSION, allocator, errors);
///
/// Its blocks have the tag "physx" below the tags of the thread.
#ifndef BLOCKYARD_PHYSX_HPP
#define BLOCKYARD_PHYSX_HPP

#include <cstddef>

#include <foundation/PxAllocatorCallback.h>

#include "blockyard/heap.h"
#include "blockyard/tag.hpp"

namespace blockyard {

/// NULL where memory is exhausted, at which PhysX ends the program.
class PhysXAllocator final : public physx::PxAllocatorCallback {
 public:
  void* allocate(std::size_t size, const char*, const char*, int) override {
    const tag physx("physx");
    return by_malloc(size);
  }
  void deallocate(void* block) override {
    const tag physx("physx");
    by_free(block);
  }
};

}  // namespace blockyard
#endif
