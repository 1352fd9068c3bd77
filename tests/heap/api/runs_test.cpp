// Blocks of whole pages: the freed one of each length that a thread keeps, and what an allocation at the memory limit
// waits for. Each test in a forked child, which has no janitor, and whose limit ends with it.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstring>
#include <thread>
#include <vector>

#include "blockyard/heap.h"
#include "heap/pages/page_allocator.hpp"

namespace {

using namespace blockyard::heap;

std::uint64_t used() {
  by_heap_statistics values{};
  by_heap_get_statistics(&values);
  return values.used;
}

void require(bool holds, const char* sentence) {
  if (!holds) {
    std::fprintf(stderr, "FAILED: %s\n", sentence);
    _exit(1);
  }
}

template <class Check>
bool holds_in_a_child(const Check& check) {
  const pid_t child = fork();
  if (child == 0) {
    by_heap_set(BY_HEAP_JANITOR, 0);
    check();
    const char* const broken = by_heap_check();
    require(broken == nullptr, broken);
    _exit(0);
  }
  int status = -1;
  return waitpid(child, &status, 0) == child && status == 0;
}

void require_that_the_thread_keeps_one_of_each_length() {
  constexpr std::size_t size = 30'000;
  constexpr std::size_t other_size = 40'000;
  constexpr std::size_t longest = 20 * page_bytes;
  by_free(by_malloc(1));               // the thread gets a heap
  void* const kept = by_malloc(size);  // from here on it keeps none
  void* const given_back = by_malloc(size);
  void* const of_other_length = by_malloc(other_size);
  const std::uint64_t before = used();
  by_free(kept);
  require(used() == before, "the first freed block of its length is not kept");
  by_free(of_other_length);
  require(used() == before, "the first freed block of another length is not kept");
  by_free(given_back);
  const std::uint64_t after = used();
  require(after < before, "a second freed block of a length is kept, too");
  std::thread([&] {
    void* const block = by_malloc(size);
    require(block != kept, "a block that one thread keeps was handed out to another");
    by_free(block);
  }).join();
  const std::uint64_t with_thread = used();  // the thread has left a heap behind
  require(by_malloc(size - 1'000) == kept, "a block of as many pages is not what the thread kept");
  require(by_malloc(other_size) == of_other_length, "a block of another length is not what the thread kept");
  require(used() == with_thread, "what the thread kept counted as free");

  void* const too_long = by_malloc(longest + 1);
  const std::uint64_t with_it = used();
  by_free(too_long);
  require(used() < with_it, "a block longer than those that are kept is kept");
}

TEST(Runs, a_thread_keeps_one_freed_block_of_each_length_and_allocates_it_again) {
  EXPECT_TRUE(holds_in_a_child(require_that_the_thread_keeps_one_of_each_length));
}

void limit_address_space_to_what_is_mapped() {
  std::FILE* const file = std::fopen("/proc/self/statm", "r");
  std::size_t pages = 0;
  require(file != nullptr && std::fscanf(file, "%zu", &pages) == 1, "/proc/self/statm can't be read");
  std::fclose(file);
  const rlimit limit{pages * static_cast<std::size_t>(sysconf(_SC_PAGESIZE)), RLIM_INFINITY};
  require(setrlimit(RLIMIT_AS, &limit) == 0, "RLIMIT_AS cannot be set");
}

bool is_asleep(pid_t thread) {
  char path[64];
  std::snprintf(path, sizeof path, "/proc/self/task/%d/stat", thread);
  const int file = open(path, O_RDONLY);
  char text[64] = {};
  require(file >= 0 && read(file, text, sizeof text - 1) > 0, "a thread's state can't be read");
  close(file);
  const char* const name_end = std::strrchr(text, ')');
  return name_end != nullptr && std::strncmp(name_end, ") S", 3) == 0;
}

// As the janitor has it while it populates or purges: free for the program, but not at this moment.
void require_that_malloc_waits_for_pages_in_work() {
  constexpr std::size_t size = std::size_t{4} << 20;
  std::vector<PageRun> in_work;
  in_work.reserve(1'000);
  std::atomic<bool> asked{false};
  const pid_t caller = gettid();
  std::thread janitor([&] {
    while (!asked) {
      std::this_thread::yield();
    }
    while (!is_asleep(caller)) {  // within malloc
      std::this_thread::yield();
    }
    for (const PageRun& run : in_work) {
      page_allocator.pages.free(run.first, PageState::free_decommitted);
    }
  });
  void* const block = by_malloc(size);
  require(block != nullptr, "there is no block to begin with");
  limit_address_space_to_what_is_mapped();
  while (by_malloc(size) != nullptr) {
  }
  by_free(block);
  for (const PageState state : {PageState::free_ready, PageState::free_dirty, PageState::free_decommitted}) {
    for (PageRun run = page_allocator.pages.take_free(state); run; run = page_allocator.pages.take_free(state)) {
      in_work.push_back(run);
    }
  }
  require(page_allocator.pages.totals().in_work >= size / page_bytes, "the freed block is not in work");
  asked = true;
  require(by_malloc(size) != nullptr, "malloc failed though its pages were only in work");
  janitor.join();
}

TEST(Runs, an_allocation_at_the_limit_waits_for_pages_in_work) {
  EXPECT_TRUE(holds_in_a_child(require_that_malloc_waits_for_pages_in_work));
}

}  // namespace
