// A shared object that links the shared libblockyard: its static blocks must be the program's.
#include "blockyard/static_block_allocator.hpp"

extern "C" __attribute__((visibility("default"))) void* plugin_allocate() {
  return blockyard::StaticBlockAllocator<248, 8>::allocate();
}
extern "C" __attribute__((visibility("default"))) void plugin_free(void* block) {
  blockyard::StaticBlockAllocator<248, 8>::free(block);
}
