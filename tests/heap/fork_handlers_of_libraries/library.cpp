// A library that registers handlers of fork as it is loaded, before a preloaded library's constructor has run. They
// take its lock, which its other functions hold while they open and close a stream, and allocate whole pages.
#include <pthread.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

extern "C" __attribute__((visibility("default"))) void write_to_log();

namespace {

pthread_mutex_t log_lock = PTHREAD_MUTEX_INITIALIZER;

void allocate() {
  for (std::size_t size = 1'000; size < 6'000'000; size *= 5) {
    void* const block = std::malloc(size);
    std::memset(block, 1, size);
    std::free(block);
  }
}

void before_fork() {
  pthread_mutex_lock(&log_lock);
  allocate();
}

void after_fork() {
  allocate();
  pthread_mutex_unlock(&log_lock);
}

[[gnu::constructor]] void start() { pthread_atfork(before_fork, after_fork, after_fork); }

}  // namespace

void write_to_log() {
  pthread_mutex_lock(&log_lock);
  std::FILE* const file = std::fopen("/dev/null", "w");
  std::fputs("a line", file);
  std::fclose(file);
  pthread_mutex_unlock(&log_lock);
}
