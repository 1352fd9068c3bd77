// A program to record: frees one of 4096 live blocks at random and allocates another in its place. Prints the
// nanoseconds that an event took. Sizes of 16 to 1039 bytes; the same sequence each time.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { live_blocks = 4096 };
static void* blocks[live_blocks];

static double now_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

int main(int count, char** arguments) {
  const long rounds = count > 1 ? atol(arguments[1]) : 5000000;
  uint32_t random = 1;
  const double begin = now_ns();
  for (long i = 0; i < rounds; ++i) {
    random = random * 1664525u + 1013904223u;
    const uint32_t place = random >> 20;
    free(blocks[place]);
    blocks[place] = malloc(16 + (random >> 6 & 1023));
  }
  const double elapsed = now_ns() - begin;
  printf("%.3f\n", elapsed / (2.0 * (double)rounds));
  return 0;
}
