/// Jolt on Blockyard's heap, instead of JPH::RegisterDefaultAllocator():
///
///   blockyard::jolt_install();
///
/// and PhysicsSystem::Update() on temp memory: give it a blockyard::JoltTempAllocator.
///
/// Jolt's blocks have the tag "jolt" below the tags of the thread.
#ifndef BLOCKYARD_JOLT_HPP
#define BLOCKYARD_JOLT_HPP

#include <Jolt/Jolt.h>

#include <Jolt/Core/Memory.h>
#include <Jolt/Core/TempAllocator.h>

#include "blockyard/heap.h"
#include "blockyard/lifetime.h"
#include "blockyard/tag.hpp"

namespace blockyard {

inline void* jolt_allocate(std::size_t size) {
  const tag jolt("jolt");
  return by_malloc(size);
}
inline void* jolt_aligned_allocate(std::size_t size, std::size_t alignment) {
  const tag jolt("jolt");
  return by_aligned_alloc(alignment, size);
}
inline void jolt_free(void* block) {
  const tag jolt("jolt");
  by_free(block);
}

/// Before any other call of Jolt.
inline void jolt_install() {
  JPH::Allocate = jolt_allocate;
  JPH::Free = jolt_free;
  JPH::AlignedAllocate = jolt_aligned_allocate;
  JPH::AlignedFree = jolt_free;
#if JPH_VERSION_MAJOR > 5 || (JPH_VERSION_MAJOR == 5 && JPH_VERSION_MINOR >= 1)
  JPH::Reallocate = [](void* block, std::size_t, std::size_t size) -> void* {
    const tag jolt("jolt");
    return by_realloc(block, size);
  };
#endif
}

/// Temp job memory, since Jolt frees on any thread. It has no size to choose; it grows to what a frame needs.
class JoltTempAllocator final : public JPH::TempAllocator {
 public:
  void* Allocate(JPH::uint size) override {
    const tag jolt("jolt");
    return size == 0 ? nullptr : by_lifetime_alloc(size, JPH_RVECTOR_ALIGNMENT, BY_TEMP_JOB);
  }
  void Free(void* block, JPH::uint) override {
    const tag jolt("jolt");
    by_lifetime_free(block, BY_TEMP_JOB);
  }
};

}  // namespace blockyard
#endif
