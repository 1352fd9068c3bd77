/// Wwise on Blockyard's heap. Include Wwise's AkMemoryMgrModule.h first; between GetDefaultSettings and Init:
///
///   blockyard::wwise_install(settings);
///
/// Blocks have the tag "wwise" below the tags of the thread.
#ifndef BLOCKYARD_WWISE_H
#define BLOCKYARD_WWISE_H

#include <cstring>

#include "blockyard/heap.h"
#include "blockyard/tag.hpp"

namespace blockyard {

inline void wwise_install(AkMemSettings& settings) {
  settings.pfMalloc = [](AkMemPoolId, std::size_t size) {
    const tag wwise("wwise");
    return by_malloc(size);
  };
  settings.pfMalign = [](AkMemPoolId, std::size_t size, AkUInt32 alignment) {
    const tag wwise("wwise");
    return by_aligned_alloc(alignment, size);
  };
  settings.pfRealloc = [](AkMemPoolId, void* block, std::size_t size) {
    const tag wwise("wwise");
    return by_realloc(block, size);
  };
  settings.pfReallocAligned = [](AkMemPoolId, void* block, std::size_t size, AkUInt32 alignment) {
    const tag wwise("wwise");
    void* const given = by_aligned_alloc(alignment, size);
    const std::size_t held = by_usable_size(block);
    if (given != nullptr && held != 0) std::memcpy(given, block, held < size ? held : size);
    if (given != nullptr) by_free(block);
    return given;
  };
  settings.pfFree = [](AkMemPoolId, void* block) {
    const tag wwise("wwise");
    by_free(block);
  };
  settings.pfSizeOfMemory = [](AkMemPoolId, void* block) { return by_usable_size(block); };
}

}  // namespace blockyard
#endif
