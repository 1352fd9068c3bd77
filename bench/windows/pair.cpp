// Nanoseconds of a pair of malloc and free, the same for the heap by name and for the C library's, where this was
// compiled.
#include <chrono>
#include <cstdio>
#include <cstdlib>

#include "blockyard/heap.h"

namespace {

template <class Allocate, class Free>
double nanoseconds(Allocate allocate, Free free) {
  constexpr int pairs = 20'000'000;
  double best = 1e9;
  for (int run = 0; run < 5; ++run) {
    const auto begun = std::chrono::steady_clock::now();
    for (int i = 0; i < pairs; ++i) {
      void* volatile block = allocate(static_cast<std::size_t>(16 + (i & 127)));
      free(block);
    }
    const std::chrono::duration<double, std::nano> took = std::chrono::steady_clock::now() - begun;
    best = took.count() / pairs < best ? took.count() / pairs : best;
  }
  return best;
}

}  // namespace

int main() {
  const double ours = nanoseconds(by_malloc, by_free);
  const double theirs = nanoseconds([](std::size_t size) { return std::malloc(size); }, std::free);
  std::printf("blockyard %.1f ns, the C library %.1f ns, ratio %.2f\n", ours, theirs, ours / theirs);
}
