/// Unreal's FMalloc on Blockyard's heap: return `new (place) FMallocBlockyard` from FPlatformMemory::BaseAllocator().
/// Include the engine's HAL/MemoryBase.h first.
///
/// Its blocks have the tag "unreal" below the tags of the thread: push "physics" in a scope, and find "physics/unreal".
#ifndef BLOCKYARD_UNREAL_H
#define BLOCKYARD_UNREAL_H

#include <cstring>

#include "blockyard/heap.h"
#include "blockyard/tag.hpp"

class FMallocBlockyard final : public FMalloc {
 public:
  void* Malloc(SIZE_T count, uint32 alignment) override {
    const blockyard::tag unreal("unreal");
    return by_aligned_alloc(real(count, alignment), count);
  }
  void* Realloc(void* original, SIZE_T count, uint32 alignment) override {
    if (count == 0) {
      Free(original);
      return nullptr;
    }
    const blockyard::tag unreal("unreal");
    if (real(count, alignment) <= 16) return by_realloc(original, count);
    void* const given = by_aligned_alloc(real(count, alignment), count);
    const SIZE_T held = by_usable_size(original);
    if (given != nullptr && held != 0) std::memcpy(given, original, held < count ? held : count);
    if (given != nullptr) by_free(original);
    return given;
  }
  void Free(void* original) override {
    const blockyard::tag unreal("unreal");
    by_free(original);
  }
  bool GetAllocationSize(void* original, SIZE_T& size) override {
    size = by_usable_size(original);
    return true;
  }
  void Trim(bool) override { by_heap_trim(); }
  bool IsInternallyThreadSafe() const override { return true; }
  bool ValidateHeap() override { return true; }
  const TCHAR* GetDescriptiveName() override { return name; }

 private:
  // As Unreal's own allocators: 16 for blocks from 16 bytes on.
  static SIZE_T real(SIZE_T count, uint32 alignment) {
    const SIZE_T least = count >= 16 ? 16 : 8;
    return alignment > least ? alignment : least;
  }
  static constexpr TCHAR name[] = {'b', 'l', 'o', 'c', 'k', 'y', 'a', 'r', 'd', 0};
};

#endif
