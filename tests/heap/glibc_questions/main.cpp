// Why: programs and their libraries ask glibc's questions about the heap (malloc_trim after a big job, mallinfo2 for a
// status page). Answered by glibc, they would speak of a heap that is not in use.
#include <malloc.h>

#include <cerrno>
#include <cstring>
#include <string>
#include <vector>

#include "behaviour.hpp"

int main() {
  const std::size_t before = mallinfo2().uordblks;
  std::vector<void*> blocks;
  blocks.reserve(64);
  for (int i = 0; i < 64; ++i) {
    blocks.push_back(std::memset(std::malloc(std::size_t{1} << 20), 1, std::size_t{1} << 20));
  }
  const struct mallinfo2 during = mallinfo2();
  // But for one slab, which the janitor may have been making when it was asked before.
  behaviour::require(during.uordblks >= before + (std::size_t{64} << 20) - (std::size_t{64} << 10),
                     "mallinfo2 does not see live blocks");
  behaviour::require(during.arena >= during.uordblks, "mallinfo2 says that more is live than there is");
  for (void* block : blocks) {
    std::free(block);
  }
  behaviour::require(malloc_trim(0) == 1, "malloc_trim found nothing to give back after 64 MiB were freed");
  behaviour::require(mallinfo2().arena < during.arena, "memory that malloc_trim gave back is still counted");

  char* text = nullptr;
  std::size_t length = 0;
  std::FILE* const stream = open_memstream(&text, &length);
  behaviour::require(malloc_info(0, stream) == 0 && malloc_info(1, stream) == EINVAL,
                     "malloc_info does not take options 0 alone");
  std::fclose(stream);
  behaviour::require(std::strstr(text, "blockyard") != nullptr, "malloc_info was answered by another heap");
  std::free(text);
  behaviour::require(malloc_usable_size(nullptr) == 0, "a null pointer has a usable size");
  behaviour::require_sound_heap();
}
