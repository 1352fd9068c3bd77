// Why: programs that must not wait for the disk, as audio programs, lock their memory. The system then refuses to take
// pages back: what the heap gave back keeps its contents, and calloc must not take it for zeroed.
#include <sys/mman.h>

#include <algorithm>

#include "behaviour.hpp"

#pragma weak by_heap_trim

int main() {
  if (mlockall(MCL_CURRENT | MCL_FUTURE) != 0) {
    std::puts("memory may not be locked here");
    return 77;
  }
  constexpr std::size_t bytes = std::size_t{16} << 20;
  for (int turn = 0; turn < 3; ++turn) {
    void* const dirty = std::malloc(bytes);
    behaviour::require(dirty != nullptr, "16 MiB can't be had");
    std::memset(dirty, 0xAB, bytes);
    std::free(dirty);
    by_heap_trim();
    auto* const clean = static_cast<unsigned char*>(std::calloc(1, bytes));
    behaviour::require(
        clean != nullptr && std::all_of(clean, clean + bytes, [](unsigned char each) { return each == 0; }),
        "calloc returned memory with old contents");
    std::free(clean);
    behaviour::require_sound_heap();
  }
}
