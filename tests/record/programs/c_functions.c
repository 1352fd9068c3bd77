// Calls each C allocation function once with a size of its own, so that the test can find each in the journal.
#define _GNU_SOURCE
#include <malloc.h>
#include <stdint.h>
#include <stdlib.h>

// C23's, which this libc may lack; the recorder has them.
__attribute__((weak)) void free_sized(void* block, size_t size);
__attribute__((weak)) void free_aligned_sized(void* block, size_t alignment, size_t size);

int main(void) {
  volatile size_t most = SIZE_MAX / 2;  // volatile: or the compiler sees that it can't be had
  void* volatile block = malloc(100001);
  free(block);
  block = calloc(7, 14287);  // 100009
  free(block);
  block = realloc(NULL, 100003);
  block = realloc(block, 200003);
  block = reallocarray(block, 3, 100001);  // 300003
  free(block);
  void* aligned = NULL;
  if (posix_memalign(&aligned, 256, 100004) != 0) return 1;
  free(aligned);
  block = aligned_alloc(512, 100352);
  free(block);
  block = memalign(1024, 100006);
  free(block);
  block = valloc(100007);
  free(block);
  block = pvalloc(100008);
  free(block);
  block = malloc(100010);
  if (free_sized == NULL || free_aligned_sized == NULL) return 7;
  free_sized(block, 100010);
  block = aligned_alloc(64, 100032);
  free_aligned_sized(block, 64, 100032);
  // What gives no block gives no event.
  free(NULL);
  if (posix_memalign(&aligned, 3, 16) == 0) return 2;
  block = malloc(most);
  if (block != NULL) return 3;
  void* volatile kept = malloc(100011);
  if (realloc(kept, most) != NULL) return 4;
  if (reallocarray(kept, most, 3) != NULL) return 5;
  kept = realloc(kept, 0);  // glibc: a free
  return kept == NULL ? 0 : 6;
}
