// Why: under RLIMIT_AS, as batch systems set it, the heap must take a smaller region, fail with NULL and ENOMEM when
// that is used up, and serve again after a free, down to limits that leave little more than the program itself; nor
// must the janitor, who finds nothing to populate there, be woken again and again. The limit is set in a fresh process:
// the region is reserved at its start.
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "behaviour.hpp"

namespace {

// At the limit a program that frees and allocates finds the reserve low at every block. By itself the janitor then
// comes at most 63 times a second, every 16 ms; where each of those blocks wakes it, 250 times and more.
// `spare` is a block to be freed for what finding the janitor itself allocates.
void require_that_the_janitor_is_left_alone(std::vector<void*>& blocks, std::size_t size, void* spare) {
  constexpr double most_naps_a_second = 125;
  behaviour::ask_for_a_janitor();
  const auto exchange = [&](int times) {
    for (int i = 0; i < times; ++i) {
      void*& block = blocks[static_cast<std::size_t>(i) % blocks.size()];
      std::free(block);
      block = std::malloc(size);
      behaviour::require(block != nullptr, "memory that was freed could not be had again");
      std::this_thread::sleep_for(std::chrono::microseconds(300));
    }
  };
  exchange(200);  // until it runs and has seen that nothing is left
  std::free(spare);
  const int janitor = behaviour::thread_of_the_janitor();
  behaviour::require(janitor != 0, "there is no janitor");
  const long before = behaviour::rest_of(janitor).naps;
  const auto begun = std::chrono::steady_clock::now();
  exchange(2'000);
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count();
  const double naps = static_cast<double>(behaviour::rest_of(janitor).naps - before);
  std::printf("%.0f naps in %.2f s\n", naps, seconds);
  behaviour::require(naps <= 10 + most_naps_a_second * seconds, "the janitor is woken for nothing");
}

[[noreturn]] void start_again(const char* name, const char* how, rlim_t bytes) {
  const rlimit limit{bytes, bytes};
  behaviour::require(setrlimit(RLIMIT_AS, &limit) == 0, "RLIMIT_AS cannot be set");
  execl("/proc/self/exe", name, how, nullptr);
  std::_Exit(1);
}

// The program and its libraries take some 12 MiB of these 40: a region of 64, or of 32 with its tables, has no room.
int be_narrow() {
  constexpr std::size_t size = 100'000;
  std::vector<void*> blocks;
  blocks.reserve(1024);
  errno = 0;
  while (blocks.size() < 1024) {
    void* const block = std::malloc(size);
    if (block == nullptr) {
      break;
    }
    std::memset(block, 1, size);
    blocks.push_back(block);
  }
  behaviour::require(blocks.size() < 1024 && errno == ENOMEM, "malloc beyond 40 MiB did not fail with ENOMEM");
  std::printf("%zu blocks of 100 KB in 40 MiB\n", blocks.size());
  behaviour::require(blocks.size() >= 120, "a process limited to 40 MiB got less than 12 MB");
  for (void* block : blocks) {
    std::free(block);
  }
  behaviour::require_sound_heap();
  return 0;
}

// Most of what address space a process has left at its start must be there to be allocated, at any limit and not only
// at those that happen to be a little above a power of two; beside it a thread must be able to begin.
int serve_most_of(std::size_t room) {
  constexpr std::size_t size = 100'000;
  std::thread([] {}).join();
  std::vector<void*> blocks;
  blocks.reserve(room / size + 1);
  const std::size_t own = blocks.capacity() * sizeof(void*);
  while (void* const block = std::malloc(size)) {
    std::memset(block, 1, size);
    blocks.push_back(block);
  }
  const double part = static_cast<double>(blocks.size() * size + own) / static_cast<double>(room);
  std::fprintf(stderr, "%.1f MiB of room: %.1f %% were served\n", static_cast<double>(room) / (1 << 20), 100 * part);
  behaviour::require(part >= 0.70, "less than seven tenths of the room that a limit leaves were served");
  std::thread([] {}).join();
  for (void* block : blocks) {
    std::free(block);
  }
  behaviour::require_sound_heap();
  return 0;
}

std::vector<void*> fill(std::size_t size) {
  std::vector<void*> blocks;
  blocks.reserve((std::size_t{256} << 20) / size);
  while (void* const block = std::malloc(size)) {
    std::memset(block, 1, 16);
    blocks.push_back(block);
  }
  return blocks;
}

// Freed blocks are had again whatever their length: the lists of free runs hold several lengths each.
int have_again(std::size_t size) {
  std::vector<void*> blocks = fill(size);
  for (std::size_t index = 0; index < blocks.size(); index += 2) {
    std::free(blocks[index]);
  }
  for (std::size_t index = 0; index < blocks.size(); index += 2) {
    blocks[index] = std::malloc(size);
    behaviour::require(blocks[index] != nullptr, "a block could not be had where one of its size was freed");
  }
  behaviour::require_sound_heap();
  return 0;
}

// Small blocks fit what larger ones left, though a slab is mostly longer.
int have_small_in_holes() {
  const std::vector<void*> blocks = fill(std::size_t{32} << 10);
  for (std::size_t index = 0; index < blocks.size(); index += 2) {
    std::free(blocks[index]);
  }
  for (std::size_t bytes = 0; bytes < (blocks.size() / 2) << 14; bytes += 64) {
    behaviour::require(std::malloc(64) != nullptr, "small blocks do not fit the holes of 32 KiB that were freed");
  }
  behaviour::require_sound_heap();
  return 0;
}

// What another thread freed of this thread's blocks is this program's again, as pages too.
int have_what_others_freed() {
  std::atomic<const std::vector<void*>*> full{nullptr};
  std::thread other([&] {  // which takes memory itself: begun while there is some
    while (full.load() == nullptr) {
      std::this_thread::yield();
    }
    for (void* block : *full.load()) {
      std::free(block);
    }
  });
  const std::vector<void*> blocks = fill(64);
  full.store(&blocks);
  other.join();
  for (std::size_t bytes = 0; bytes < blocks.size() * 64 / 2; bytes += std::size_t{1} << 20) {
    behaviour::require(std::malloc(std::size_t{1} << 20) != nullptr,
                       "small blocks that another thread freed do not serve large ones");
  }
  behaviour::require_sound_heap();
  return 0;
}

std::size_t address_space_in_use() {
  std::FILE* const file = std::fopen("/proc/self/statm", "r");
  std::size_t pages = 0;
  behaviour::require(file != nullptr && std::fscanf(file, "%zu", &pages) == 1, "/proc/self/statm can't be read");
  std::fclose(file);
  return pages * static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
}

// Without the heap: how much its address space leaves of each limit is what the program with it is held to.
int without_heap() { return static_cast<int>((address_space_in_use() + (1 << 20) - 1) >> 20); }

template <class Then>
int run(const Then& then) {
  const pid_t child = fork();
  if (child == 0) {
    then();
    std::_Exit(1);
  }
  int status = -1;
  behaviour::require(waitpid(child, &status, 0) == child && WIFEXITED(status), "a child ended by a signal");
  return WEXITSTATUS(status);
}

void require_that_freed_memory_serves(const char* name) {
  for (const char* how : {"again 300000", "again 150000", "again 9000", "holes", "remote"}) {
    behaviour::require(run([&] { start_again(name, how, rlim_t{256} << 20); }) == 0, how);
  }
}

void require_that_any_limit_serves(const char* name) {
  const int alone = run([&] {
    unsetenv("LD_PRELOAD");
    execl("/proc/self/exe", name, "alone", nullptr);
  });
  // The preloaded library itself takes some too.
  const std::size_t taken = (static_cast<std::size_t>(alone) + 1) << 20;
  for (const std::size_t limit : {96u, 110u, 150u, 200u, 270u, 500u, 700u}) {
    const std::string room = std::to_string((limit << 20) - taken);
    behaviour::require(run([&] { start_again(name, room.c_str(), rlim_t{limit} << 20); }) == 0,
                       "a limit of address space was not served");
  }
}

}  // namespace

int main(int count, char** arguments) {
  if (count == 1) {
    const pid_t child = fork();
    if (child == 0) {
      start_again(arguments[0], "narrow", rlim_t{40} << 20);
    }
    int status = -1;
    behaviour::require(waitpid(child, &status, 0) == child && status == 0, "40 MiB of address space did not do");
    require_that_any_limit_serves(arguments[0]);
    require_that_freed_memory_serves(arguments[0]);
    start_again(arguments[0], "limited", rlim_t{1} << 30);
  }
  if (std::strcmp(arguments[1], "narrow") == 0) {
    return be_narrow();
  }
  if (std::strncmp(arguments[1], "again ", 6) == 0) {
    return have_again(std::strtoull(arguments[1] + 6, nullptr, 10));
  }
  if (std::strcmp(arguments[1], "holes") == 0) {
    return have_small_in_holes();
  }
  if (std::strcmp(arguments[1], "remote") == 0) {
    return have_what_others_freed();
  }
  if (std::strcmp(arguments[1], "alone") == 0) {
    return without_heap();
  }
  if (const std::size_t room = std::strtoull(arguments[1], nullptr, 10); room != 0) {
    return serve_most_of(room);
  }
  std::vector<void*> blocks;
  blocks.reserve(4096);
  const std::size_t size = std::size_t{1} << 20;
  void* const spare = std::malloc(std::size_t{256} << 10);
  errno = 0;
  for (;;) {
    void* const block = std::malloc(size);
    if (block == nullptr) {
      break;
    }
    std::memset(block, 1, size);
    blocks.push_back(block);
    behaviour::require(blocks.size() < 1024, "a process limited to 1 GiB got more than that");
  }
  behaviour::require(errno == ENOMEM, "malloc failed without ENOMEM");
  behaviour::require(blocks.size() >= 700, "a process limited to 1 GiB got less than 700 MiB");
  errno = 0;
  behaviour::require(std::calloc(800, size) == nullptr && errno == ENOMEM,
                     "calloc beyond the limit did not fail with ENOMEM");
  require_that_the_janitor_is_left_alone(blocks, size, spare);
  for (std::size_t index = 0; index < blocks.size(); index += 2) {
    std::free(blocks[index]);
    blocks[index] = nullptr;
  }
  // Long enough for the janitor to populate, to cut ready slabs and to purge: all of that is still the program's.
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  for (std::size_t index = 0; index < blocks.size(); index += 2) {
    blocks[index] = std::malloc(size);
    behaviour::require(blocks[index] != nullptr, "memory that was freed could not be had again");
  }
  for (void* block : blocks) {
    std::free(block);
  }
  behaviour::require_sound_heap();
}
