/* The C side: every lifetime, an arena and the statistics, from a C program. */
#include <stdio.h>
#include <string.h>

#include "blockyard/blockyard.h"

static int check(int holds, const char* what) {
  if (!holds) fprintf(stderr, "%s\n", what);
  return holds ? 0 : 1;
}

int main(void) {
  int failed = 0;
  for (int i = BY_TEMP; i <= BY_PERSISTENT; ++i) {
    const by_lifetime lifetime = (by_lifetime)i;
    char* block = by_lifetime_alloc(16, 16, lifetime);
    strcpy(block, "from C");
    block = by_lifetime_realloc(block, 16, 5000, 16, lifetime);
    failed += check(block != NULL && strcmp(block, "from C") == 0, "a block lost its contents");
    by_lifetime_free(block, lifetime);
  }
  const by_temp_mark mark = by_temp_mark_now();
  void* first = by_lifetime_alloc(10, 1, BY_TEMP);
  by_temp_rewind(mark);
  failed += check(by_lifetime_alloc(10, 1, BY_TEMP) == first, "a mark was not gone back to");
  by_rewindable* arena = by_rewindable_create(0, NULL);
  void* of_arena = by_rewindable_alloc(arena, 100, 16);
  by_rewindable_rewind(arena);
  failed += check(by_rewindable_alloc(arena, 100, 16) == of_arena, "an arena was not rewound");
  by_rewindable_destroy(arena);
  by_frame_end(0);
  by_lifetime_statistics statistics;
  by_lifetime_get_statistics(&statistics);
  failed += check(statistics.frames == 1, "the frame was not counted");
  failed += check(statistics.temp.region_bytes == (size_t)256 << 10, "a thread's region is not 256 KiB by default");
  by_lifetime_dump_statistics(1);
  return failed;
}
