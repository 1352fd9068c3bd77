// Differential fuzzing of the lifetimes against the model of exercise_lifetimes.hpp.
#include <cstdio>
#include <cstdlib>
#include <thread>

#include "fuzz/lifetime/exercise_lifetimes.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  // A small region, so that blocks fall out of it; of its own thread, so that each input starts from the same state.
  by_temp_configure(2048, 8192);
  std::thread([=] {
    if (const char* const fault = lifetime_exercise::Exercise({data, size}).run()) {
      std::fprintf(stderr, "%s\n", fault);
      std::abort();
    }
  }).join();
  return 0;
}
