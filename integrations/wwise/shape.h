// The shape of Wwise's memory settings, written from its documentation: what integrations/wwise is compiled against
// here, since Wwise cannot be had. A program includes AK/SoundEngine/Common/AkMemoryMgrModule.h instead.
#pragma once

#include <cstddef>
#include <cstdint>

using AkMemPoolId = std::uint32_t;
using AkUInt32 = std::uint32_t;

struct AkMemSettings {
  void* (*pfMalloc)(AkMemPoolId pool, std::size_t size);
  void* (*pfMalign)(AkMemPoolId pool, std::size_t size, AkUInt32 alignment);
  void* (*pfRealloc)(AkMemPoolId pool, void* block, std::size_t size);
  void* (*pfReallocAligned)(AkMemPoolId pool, void* block, std::size_t size, AkUInt32 alignment);
  void (*pfFree)(AkMemPoolId pool, void* block);
  std::size_t (*pfSizeOfMemory)(AkMemPoolId pool, void* block);
};
