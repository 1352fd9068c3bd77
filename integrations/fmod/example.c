// Calls what was installed as FMOD does.
#include <string.h>

// First, as in a program.
#include "shape.h"

#include "blockyard_fmod.h"

static FMOD_MEMORY_ALLOC_CALLBACK allocate;
static FMOD_MEMORY_REALLOC_CALLBACK reallocate;
static FMOD_MEMORY_FREE_CALLBACK release;

FMOD_RESULT FMOD_Memory_Initialize(void* pool, int bytes, FMOD_MEMORY_ALLOC_CALLBACK of_alloc,
                                   FMOD_MEMORY_REALLOC_CALLBACK of_realloc, FMOD_MEMORY_FREE_CALLBACK of_free,
                                   FMOD_MEMORY_TYPE types) {
  (void)pool, (void)bytes, (void)types;
  allocate = of_alloc;
  reallocate = of_realloc;
  release = of_free;
  return FMOD_OK;
}

int main(void) {
  if (by_fmod_install() != FMOD_OK) return 1;
  int good = 0;
  for (unsigned int size = 1; size <= 65536; size *= 2) {
    const FMOD_MEMORY_TYPE type = size < 1000 ? FMOD_MEMORY_NORMAL : FMOD_MEMORY_STREAM_DECODE;
    char* block = allocate(size, type, "sound.cpp");
    memset(block, 42, size);
    block = reallocate(block, 3 * size, type, "sound.cpp");
    good += block[size - 1] == 42;
    release(block, type, "sound.cpp");
  }
  return good == 17 ? 0 : 1;
}
