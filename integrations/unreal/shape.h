// The shape of Unreal's allocator interface, written from its documentation: what integrations/unreal is compiled
// against here, since the engine cannot be had. Engine code includes the engine's headers instead.
#pragma once

#include <cstddef>
#include <cstdint>

using SIZE_T = std::size_t;
using uint32 = std::uint32_t;
using TCHAR = char16_t;
constexpr uint32 DEFAULT_ALIGNMENT = 0;

class FMalloc {
 public:
  virtual ~FMalloc() = default;
  virtual void* Malloc(SIZE_T count, uint32 alignment = DEFAULT_ALIGNMENT) = 0;
  virtual void* Realloc(void* original, SIZE_T count, uint32 alignment = DEFAULT_ALIGNMENT) = 0;
  virtual void Free(void* original) = 0;
  virtual SIZE_T QuantizeSize(SIZE_T count, uint32) { return count; }
  virtual bool GetAllocationSize(void*, SIZE_T&) { return false; }
  virtual void Trim(bool) {}
  virtual bool IsInternallyThreadSafe() const { return false; }
  virtual bool ValidateHeap() { return true; }
  virtual const TCHAR* GetDescriptiveName() { return u"unknown"; }
};
