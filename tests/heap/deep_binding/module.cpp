// A module that is opened with RTLD_DEEPBIND, and hands blocks over in both directions.
#include <cstdlib>

extern "C" __attribute__((visibility("default"))) void* module_allocate(std::size_t size) { return std::malloc(size); }
extern "C" __attribute__((visibility("default"))) void module_free(void* block) { std::free(block); }
