// THREADS threads, each of PAIRS pairs of malloc and free, all at once.
#include <pthread.h>
#include <stdlib.h>

static long pairs;

static void* work(void* argument) {
  for (long i = 0; i < pairs; ++i) {
    void* block = malloc(48);
    *(volatile char*)block = 1;
    free(block);
  }
  return argument;
}

int main(int count, char** arguments) {
  const int threads = count > 1 ? atoi(arguments[1]) : 300;
  pairs = count > 2 ? atol(arguments[2]) : 100000;
  pthread_t* all = malloc((size_t)threads * sizeof *all);
  pthread_attr_t small;
  pthread_attr_init(&small);
  pthread_attr_setstacksize(&small, 65536);
  for (int i = 0; i < threads; ++i) {
    if (pthread_create(&all[i], &small, work, NULL) != 0) return 1;
  }
  for (int i = 0; i < threads; ++i) pthread_join(all[i], NULL);
  return 0;
}
