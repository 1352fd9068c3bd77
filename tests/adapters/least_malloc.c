/* The least that a foreign allocator may export: malloc and free, from one static pool that is never used twice.
   Everything else of the family must be made of these two. `free` traps on an address that `malloc` never returned. */
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#define POOL ((size_t)256 << 20)
#define MARK ((uint64_t)0x6c65617374000000)

__attribute__((visibility("default"))) void* malloc(size_t size);
__attribute__((visibility("default"))) void free(void* block);

static _Alignas(16) unsigned char pool[POOL];
static atomic_size_t used;

void* malloc(size_t size) {
  const size_t whole = ((size + 15) & ~(size_t)15) + 16;
  const size_t at = atomic_fetch_add(&used, whole);
  if (at + whole > POOL) return NULL;
  *(uint64_t*)(void*)&pool[at] = MARK;
  return &pool[at + 16];
}

void free(void* block) {
  if (block == NULL) return;
  uint64_t* mark = (uint64_t*)(void*)((unsigned char*)block - 16);
  if ((unsigned char*)block < pool || (unsigned char*)block >= pool + POOL || *mark != MARK) __builtin_trap();
  *mark = 0;
}
