// Calls what was installed as Wwise does.
#include <cstdint>

// First, as in a program.
#include "shape.h"

#include "blockyard_wwise.h"

int main() {
  AkMemSettings settings{};
  blockyard::wwise_install(settings);
  int good = 0;
  for (std::size_t size = 1; size <= 65536; size *= 2) {
    auto* block = static_cast<unsigned char*>(settings.pfMalloc(0, size));
    block[size - 1] = 42;
    block = static_cast<unsigned char*>(settings.pfRealloc(0, block, 2 * size));
    block = static_cast<unsigned char*>(settings.pfReallocAligned(0, block, 3 * size, 256));
    good += block[size - 1] == 42 && reinterpret_cast<std::uintptr_t>(block) % 256 == 0;
    good += settings.pfSizeOfMemory(0, block) >= 3 * size;
    settings.pfFree(0, block);
    settings.pfFree(0, settings.pfMalign(0, size, 64));
  }
  return good == 34 ? 0 : 1;
}
