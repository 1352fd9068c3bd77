// Why: a program that links another heap is run on the preloaded one. Whatever form of new it calls, the deletes are
// this heap's: no block may come from the other.
#include <algorithm>
#include <new>
#include <vector>

#include "behaviour.hpp"

extern "C" int other_heap();

int main() {
  struct alignas(64) Wide {
    char bytes[64];
  };
  behaviour::require(other_heap() == 1, "the other heap was used before main");
  delete new (std::nothrow) int(1);
  delete[] new (std::nothrow) int[100];
  delete new (std::nothrow) Wide;
  delete[] new (std::nothrow) Wide[3];
  std::vector<int> numbers(1'000, 1);
  std::stable_sort(numbers.begin(), numbers.end());  // whose buffer comes from a form that does not throw
  behaviour::require(other_heap() == 1, "a form of operator new came from the heap that the program links");
  behaviour::require_sound_heap();
}
