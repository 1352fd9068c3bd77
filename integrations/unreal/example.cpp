// Calls each function of the shape as the engine does.
#include <cstdint>

// First, as in an engine's source.
#include "shape.h"

#include "blockyard_unreal.h"

int main() {
  FMallocBlockyard blockyard;
  FMalloc* const engine = &blockyard;
  int good = 0;
  for (SIZE_T size = 1; size <= 65536; size *= 2) {
    for (uint32 alignment = 0; alignment <= 4096; alignment = alignment == 0 ? 16 : alignment * 16) {
      auto* block = static_cast<unsigned char*>(engine->Malloc(size, alignment));
      block[size - 1] = 42;
      block = static_cast<unsigned char*>(engine->Realloc(block, 3 * size, alignment));
      SIZE_T held = 0;
      const bool is_known = engine->GetAllocationSize(block, held) && held >= 3 * size;
      const bool is_aligned = alignment == 0 || reinterpret_cast<std::uintptr_t>(block) % alignment == 0;
      good += is_known && is_aligned && block[size - 1] == 42;
      good += engine->Realloc(block, 0, alignment) == nullptr;
    }
  }
  engine->Free(engine->Realloc(nullptr, 100));
  engine->Trim(true);
  return good == 136 ? 0 : 1;
}
