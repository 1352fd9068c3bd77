// Differential fuzzing of heap.h against the shadow model of exercise_heap.hpp.
#include <cstdio>
#include <cstdlib>

#include "fuzz/heap/exercise_heap.hpp"

namespace {

// Without a janitor an input does the same work each time; frame ends do what it would. Before the heap reads its
// settings.
[[gnu::constructor(101)]] void without_janitor() { setenv("BLOCKYARD_HEAP_JANITOR", "0", 1); }

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (const char* const fault = heap_exercise::Exercise({data, size}).run(); fault != nullptr) {
    std::fprintf(stderr, "%s\n", fault);
    std::abort();
  }
  return 0;
}
