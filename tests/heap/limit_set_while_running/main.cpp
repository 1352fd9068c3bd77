// Why: a program may limit its own address space, or be limited from outside, long after its start. The limit in force
// when the heap grows is the one that counts: malloc must fail with ENOMEM at it, threads must still start beside a
// heap that has used it up, and where the limit is raised the heap must grow again. One block that grows and grows must
// get most of what the limit leaves, and be intact when it gets no more. What other threads map meanwhile must not fail
// because the heap asks what is left.
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <thread>
#include <vector>

#include "behaviour.hpp"

namespace {

constexpr std::size_t mib = std::size_t{1} << 20;

void limit(int resource, rlim_t bytes) {
  rlimit both{};
  behaviour::require(getrlimit(resource, &both) == 0, "a limit cannot be read");
  both.rlim_cur = bytes;
  behaviour::require(setrlimit(resource, &both) == 0, "a limit cannot be set");
}

void limit_address_space(rlim_t bytes) { limit(RLIMIT_AS, bytes); }

// pthread_create, whose failure is a result and no exception.
bool a_thread_starts() {
  pthread_t thread{};
  const auto allocate = [](void*) -> void* {
    std::free(std::malloc(100));
    return nullptr;
  };
  return pthread_create(&thread, nullptr, allocate, nullptr) == 0 && pthread_join(thread, nullptr) == 0;
}

void allocate_until_it_fails(std::vector<void*>& blocks, std::size_t size) {
  errno = 0;
  while (blocks.size() < blocks.capacity()) {
    void* const block = std::malloc(size);
    if (block == nullptr) {
      behaviour::require(errno == ENOMEM, "malloc failed without ENOMEM");
      return;
    }
    blocks.push_back(std::memset(block, 1, size));
  }
}

void require_that_a_limit_holds(std::size_t size, std::size_t limit_mib) {
  std::vector<void*> blocks;
  blocks.reserve(2 * limit_mib * mib / size);
  limit_address_space(limit_mib * mib);
  behaviour::require(a_thread_starts(), "no thread starts under a limit that leaves room for hundreds");
  allocate_until_it_fails(blocks, size);
  std::printf("%zu MiB in blocks of %zu KiB under a limit of %zu MiB\n", blocks.size() * size / mib, size / 1024,
              limit_mib);
  behaviour::require(blocks.size() * size < limit_mib * mib, "more was handed out than the limit allows");
  behaviour::require(blocks.size() * size > limit_mib * mib / 4 * 3, "the limit left less than three quarters");
  behaviour::require(a_thread_starts(), "no thread starts beside a heap that has used its limit up");
  const std::size_t under_limit = blocks.size();
  limit_address_space(RLIM_INFINITY);
  allocate_until_it_fails(blocks, size);
  behaviour::require(blocks.size() == blocks.capacity() && blocks.size() > under_limit,
                     "the heap does not grow where a limit was raised");
  for (void* block : blocks) {
    std::free(block);
  }
}

// As a buffer that is read into: each time longer, never two of them.
void require_that_a_block_grows_to_the_limit() {
  constexpr std::size_t step = 3'000'000;
  constexpr std::size_t limit_mib = 256;
  std::vector<void*> blocks;
  blocks.reserve(100'000);
  limit_address_space(limit_mib * mib);
  std::size_t size = step;
  auto* block = static_cast<unsigned char*>(std::malloc(size));
  behaviour::require(block != nullptr, "there is no first block");
  std::memset(block, 1, size);
  errno = 0;
  for (void* grown = std::realloc(block, size + step); grown != nullptr; grown = std::realloc(block, size + step)) {
    block = static_cast<unsigned char*>(grown);
    std::memset(block + size, 1, step);
    size += step;
  }
  std::printf("a block grew to %zu MiB under a limit of %zu MiB\n", size / mib, limit_mib);
  behaviour::require(errno == ENOMEM, "realloc failed without ENOMEM");
  behaviour::require(size > limit_mib * mib / 4 * 3, "a block that grows got less than three quarters of the limit");
  for (std::size_t at = 0; at < size; ++at) {
    behaviour::require(block[at] == 1, "a block changed that realloc grew, or failed to");
  }
  // Until not even a page is left: what shrinks needs none.
  for (const std::size_t each : {mib, mib / 16, std::size_t{9'000}, std::size_t{64}}) {
    allocate_until_it_fails(blocks, each);
  }
  block = static_cast<unsigned char*>(std::realloc(block, 20'000));
  behaviour::require(block != nullptr && block[19'999] == 1, "a block could not be made shorter");
  for (const std::size_t each : {mib, mib / 16, std::size_t{9'000}, std::size_t{64}}) {
    allocate_until_it_fails(blocks, each);
  }
  errno = 0;
  block = static_cast<unsigned char*>(std::realloc(block, 100));
  behaviour::require(errno == 0, "a realloc that shortens a block leaves the error of its attempt to move");
  behaviour::require(block != nullptr && block[99] == 1, "a block could not be made short where no page is left");
  std::free(block);
}

// A column of statm, in pages there.
std::size_t bytes_of(int column) {
  std::FILE* const file = std::fopen("/proc/self/statm", "r");
  behaviour::require(file != nullptr, "/proc/self/statm can't be opened");
  std::size_t pages = 0;
  for (int each = 0; each <= column; ++each) {
    behaviour::require(std::fscanf(file, "%zu", &pages) == 1, "/proc/self/statm can't be read");
  }
  std::fclose(file);
  return pages * static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
}

std::size_t address_space_in_use() { return bytes_of(0); }

// How much is left does not matter: what the heap maps ahead of need must leave room for a stack, too.
void require_that_threads_start_beside_a_full_heap(std::size_t left_mib) {
  constexpr int data_column = 5;
  std::vector<void*> blocks;
  blocks.reserve(10'000);
  limit(RLIMIT_DATA, bytes_of(data_column) + left_mib * mib);
  allocate_until_it_fails(blocks, 100'000);
  behaviour::require(a_thread_starts(), "no thread starts beside a heap that has used RLIMIT_DATA up");
}

// Another thread maps `theirs` bytes again and again while `allocate` runs with `left` bytes of address space.
template <class Allocate>
void require_that_others_map_undisturbed(std::size_t left, std::size_t theirs, const Allocate& allocate) {
  std::atomic<bool> over{false};
  std::atomic<int> maps{0};
  int failed = 0;
  std::atomic<bool> measured{false};
  std::thread other([&] {
    while (!measured) {
      std::this_thread::yield();
    }
    for (; !over; ++maps) {
      void* const mapped = mmap(nullptr, theirs, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
      if (mapped == MAP_FAILED) {
        ++failed;
      } else {
        munmap(mapped, theirs);
      }
    }
  });
  limit_address_space(address_space_in_use() + left);
  measured = true;
  while (maps == 0) {
    std::this_thread::yield();
  }
  allocate();
  over = true;
  other.join();
  std::printf("%d of %d mappings of another thread failed\n", failed, maps.load());
  behaviour::require(failed == 0, "what another thread mapped failed because the heap asked what is left");
}

// 18 MiB are left. The heap asks for 12 and for what must stay beside it, which is refused; the other thread for 9.
void require_that_others_map_undisturbed_at_the_limit() {
  constexpr std::size_t left = 18 * mib;
  constexpr std::size_t wanted = 12 * mib;
  // All that the heap has mapped is used up before what is left is set.
  std::vector<void*> blocks;
  blocks.reserve(1'000);
  limit_address_space(address_space_in_use() + left);
  allocate_until_it_fails(blocks, wanted);
  require_that_others_map_undisturbed(left, 9 * mib, [] {
    for (int attempt = 0; attempt < 20'000; ++attempt) {
      behaviour::require(std::malloc(wanted) == nullptr, "the heap grew where too little is left beside it");
    }
  });
}

// The heap takes 300 MiB of 900, the other thread 300.
void require_that_others_map_undisturbed_far_from_the_limit() {
  require_that_others_map_undisturbed(900 * mib, 300 * mib, [] {
    for (int attempt = 0; attempt < 100; ++attempt) {
      behaviour::require(std::malloc(3 * mib) != nullptr, "malloc failed far from the limit");
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  });
}

// Each in a process of its own: what one has mapped stays the heap's when the next sets a lower limit.
template <class Check>
void require_in_a_child(Check&& check) {
  const pid_t child = fork();
  if (child == 0) {
    behaviour::end_with_parent();
    check();
    behaviour::require_sound_heap();
    std::exit(0);
  }
  int status = -1;
  behaviour::require(waitpid(child, &status, 0) == child && status == 0, "a limit set at run time does not hold");
}

}  // namespace

int main() {
  require_in_a_child([] { require_that_a_limit_holds(mib, 256); });
  require_in_a_child([] { require_that_a_limit_holds(100'000, 384); });
  require_in_a_child([] { require_that_a_limit_holds(500, 512); });
  require_in_a_child(require_that_a_block_grows_to_the_limit);
  for (const std::size_t left_mib : {33u, 36u, 40u, 68u, 100u}) {
    require_in_a_child([left_mib] { require_that_threads_start_beside_a_full_heap(left_mib); });
  }
  require_in_a_child(require_that_others_map_undisturbed_at_the_limit);
  require_in_a_child(require_that_others_map_undisturbed_far_from_the_limit);
  behaviour::require_sound_heap();
}
