// Why: programs and their libraries ask glibc's questions about the heap (malloc_trim after a big job, mallinfo2 for a
// status page). Answered by glibc, they would speak of a heap that is not in use.
#include <malloc.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "behaviour.hpp"

// C23's and glibc's own, which no header declares yet or any more.
extern "C" void free_sized(void* block, size_t size);
extern "C" void free_aligned_sized(void* block, size_t alignment, size_t size);
extern "C" void* __libc_malloc(size_t size);
extern "C" void __libc_free(void* block);
extern "C" void* __libc_calloc(size_t count, size_t size);
extern "C" void* __libc_realloc(void* block, size_t size);
extern "C" void* __libc_memalign(size_t alignment, size_t size);
extern "C" void* __libc_valloc(size_t size);
extern "C" void* __libc_pvalloc(size_t size);
#pragma weak free_sized
#pragma weak free_aligned_sized
#pragma weak by_heap_get
#pragma weak by_usable_size

namespace {

// What a status page shows must not be nonsense because threads allocate while it is asked for: a difference below zero
// reads as 16 EiB. Hardly anything is live here, and what is freed goes from thread to thread: whoever counts meanwhile
// may well see a freed block twice.
void require_figures_that_hold_while_threads_allocate() {
  std::atomic<bool> over{false};
  std::array<std::atomic<void*>, 64> shared{};
  const auto work = [&] {
    for (std::size_t size = 64; !over.load(std::memory_order_relaxed); size = size % 1'984 + 64) {
      for (const bool allocate : {true, false}) {
        for (std::atomic<void*>& place : shared) {
          std::free(place.exchange(allocate ? std::malloc(size) : nullptr));
        }
      }
    }
  };
  std::array<std::thread, 3> threads;
  for (std::thread& thread : threads) {
    thread = std::thread(work);
  }
  for (int look = 0; look < 3'000; ++look) {
    const struct mallinfo2 now = mallinfo2();
    behaviour::require(now.uordblks <= now.arena && now.fordblks == now.arena - now.uordblks,
                       "mallinfo2 says that more is live than there is while threads allocate");
    const by_heap_statistics figures = behaviour::statistics();
    behaviour::require(figures.live <= figures.used && figures.used <= figures.committed &&
                           figures.fragmentation >= 0 && figures.fragmentation <= 1,
                       "the statistics contradict themselves while threads allocate");
  }
  over = true;
  for (std::thread& thread : threads) {
    thread.join();
  }
}

// C's and POSIX's fine print of the rest of the family: zero sizes, impossible ones, errno, alignments.
void require_the_fine_print() {
  // Not to be seen through: the compiler warns of what is asked for on purpose.
  volatile std::size_t huge = SIZE_MAX / 2;
  errno = 5;
  behaviour::require(reallocarray(nullptr, huge, 3) == nullptr && errno == ENOMEM,
                     "reallocarray does not refuse an overflowing product");
  void* block = reallocarray(nullptr, 10, 30);
  behaviour::require(block != nullptr && malloc_usable_size(block) >= 300,
                     "reallocarray gives less than was asked for");
  std::memset(block, 9, 300);
  behaviour::require(reallocarray(block, huge, 3) == nullptr && static_cast<char*>(block)[299] == 9,
                     "a reallocarray that fails loses the block");
  behaviour::require(reallocarray(block, 0, 30) == nullptr, "reallocarray to nothing does not free, as glibc's does");
  behaviour::require(std::realloc(std::malloc(100), 0) == nullptr, "realloc to nothing does not free, as glibc's does");
  block = std::realloc(nullptr, 0);
  behaviour::require(block != nullptr, "realloc of nothing to nothing is no malloc(0)");
  std::free(block);
  void* const first = std::calloc(0, 8);
  void* const second = std::malloc(0);
  behaviour::require(first != nullptr && second != nullptr && first != second, "blocks of no bytes are not distinct");
  std::free(first);
  std::free(second);
  errno = 5;
  behaviour::require(posix_memalign(&block, 24, 8) == EINVAL && posix_memalign(&block, 4, 8) == EINVAL && errno == 5 &&
                         posix_memalign(&block, 64, huge) == ENOMEM && errno == 5,
                     "posix_memalign's errors are not its results, or it touches errno");
  behaviour::require(posix_memalign(&block, 4096, 0) == 0 && reinterpret_cast<std::uintptr_t>(block) % 4096 == 0,
                     "posix_memalign of nothing is not aligned");
  std::free(block);
  behaviour::require(errno == 5, "free touches errno");
  errno = 0;
  behaviour::require(std::malloc(huge) == nullptr && errno == ENOMEM, "malloc does not refuse PTRDIFF_MAX");
  // Whatever alignment and size: freed with both, as C23 has it, with nothing of it left behind.
  for (std::size_t alignment = 16; alignment <= 65'536; alignment *= 2) {
    for (const std::size_t size : {std::size_t{0}, std::size_t{1}, alignment, 3 * alignment, std::size_t{300'000}}) {
      block = std::aligned_alloc(alignment, size);
      behaviour::require(block != nullptr && reinterpret_cast<std::uintptr_t>(block) % alignment == 0 &&
                             malloc_usable_size(block) >= size,
                         "aligned_alloc gives less than was asked for");
      free_aligned_sized(block, alignment, size);
      block = std::malloc(size);
      free_sized(block, size);
    }
  }
  free_sized(nullptr, 100);
  free_aligned_sized(nullptr, 64, 100);
}

// Blocks of one name of the family, freed by another.
void require_that_all_names_are_of_one_heap() {
  const auto same = [](void* block, std::size_t size) {
    behaviour::require(block != nullptr && by_usable_size(block) >= size, "a name of the family is another heap's");
    return block;
  };
  std::free(same(__libc_malloc(100), 100));
  std::free(same(__libc_calloc(10, 30), 300));
  std::free(same(__libc_realloc(std::malloc(10), 5'000), 5'000));
  std::free(same(__libc_memalign(64, 300), 300));
  std::free(same(__libc_valloc(300), 300));
  std::free(same(__libc_pvalloc(300), 4'096));
  __libc_free(std::malloc(100));
  __libc_free(std::malloc(100'000));
}

void require_that_mallopt_says_what_it_does() {
  behaviour::require(mallopt(M_MMAP_MAX, 0) == 1, "mallopt refuses what holds anyway");
  behaviour::require(mallopt(M_MMAP_THRESHOLD, 1 << 20) == 0 && mallopt(M_ARENA_MAX, 1) == 0 && mallopt(4'711, 1) == 0,
                     "mallopt takes what it does not do");
  const std::uint64_t resident = behaviour::statistics().resident;
  behaviour::require(mallopt(M_TOP_PAD, 512 << 20) == 1 && mallopt(M_TOP_PAD, -1) == 0,
                     "mallopt refuses to take address space ahead");
  for (int turn = 0; turn < 500; ++turn) {
    std::free(std::malloc(100'000));
    usleep(200);
  }
  behaviour::require(behaviour::statistics().resident < resident + (64 << 20),
                     "mallopt populates what was only to be taken ahead");
  behaviour::require(mallopt(M_TOP_PAD, 0) == 1, "mallopt refuses to take nothing ahead");
  const std::uint64_t purge = by_heap_get(BY_HEAP_PURGE);
  behaviour::require(mallopt(M_TRIM_THRESHOLD, -1) == 1 && by_heap_get(BY_HEAP_PURGE) > purge,
                     "mallopt refuses to keep what is free");
  behaviour::require(mallopt(M_TRIM_THRESHOLD, 128 << 10) == 1 && by_heap_get(BY_HEAP_PURGE) == purge,
                     "mallopt does not take back that what is free is kept");
}

}  // namespace

int main() {
  require_the_fine_print();
  require_that_all_names_are_of_one_heap();
  require_that_mallopt_says_what_it_does();
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
  require_figures_that_hold_while_threads_allocate();
  behaviour::require_sound_heap();
}
