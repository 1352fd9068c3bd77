// Why: docs/reference/bounds.md states how often each loop of the heap turns at most. Here the plain heap, as it is
// shipped and not under the checked build's layer, is compiled with those bounds asserted. That each is really counted,
// and that this program gets to its loop, is seen from one turn too many, planted in one loop after the other.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cctype>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "base/bound.hpp"
#include "blockyard/heap.h"
#include "heap/api/many.hpp"
#include "heap/background/maintenance.hpp"
#include "heap/pages/page_allocator.hpp"

namespace {

using blockyard::heap::page_allocator;

constexpr const char* planted = "BLOCKYARD_TEST_PLANTED_TURN";

// Before the heap is readied, which runs loops too.
[[gnu::constructor(101)]] void plant() { blockyard::base::planted_turn = std::getenv(planted); }

void pause_ms(int ms) { std::this_thread::sleep_for(std::chrono::milliseconds(ms)); }

// Without the janitor a frame's end does its work, here at once and as much as there is.
void end_frames(int count) {
  for (int frame = 0; frame < count; ++frame) {
    by_heap_frame_end(~std::uint64_t{0});
  }
}

void hand_blocks_over() {
  std::vector<void*> blocks = allocated(4'000, 64);
  std::thread([&] { free_all(blocks); }).join();
  free_all(allocated(100, 64));
  blocks = allocated(4'000, 64);
  std::thread([&] { free_all(blocks); }).join();
}

void use_arena() {
  by_arena* const heap = by_arena_create();
  std::vector<void*> blocks;
  for (int i = 0; i < 3'000; ++i) {
    blocks.push_back(by_arena_alloc(heap, 100));
  }
  for (int i = 0; i < 5; ++i) {
    by_arena_alloc(heap, 100'000);
  }
  free_all(blocks);  // as from another thread: they are adopted by the next allocations
  for (int i = 0; i < 3'000; ++i) {
    by_arena_alloc(heap, 100);
  }
  by_arena_destroy(heap);
}

// Chunks of which a part stays in use ask for small pages from then on; whole ones, and their tables, go back.
void give_back() {
  std::vector<void*> blocks = allocated(200, 300'000);
  std::vector<void*> every_other;
  std::vector<void*> rest;
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    (i % 2 == 0 ? every_other : rest).push_back(blocks[i]);
  }
  free_all(every_other);
  by_heap_trim();
  std::vector<void*> large = allocated(8, std::size_t{16} << 20);
  free_all(allocated(20, 400'000));
  free_all(large);
  by_heap_trim();
  end_frames(20);
  free_all(rest);
}

bool sleeps(pid_t thread) {
  std::ifstream stat("/proc/self/task/" + std::to_string(thread) + "/stat");
  const std::string text{std::istreambuf_iterator<char>(stat), {}};
  const std::size_t name_end = text.rfind(')');
  return name_end != std::string::npos && text.compare(name_end, 3, ") S") == 0;
}

// A thread that waits for the page lock spins for a while before it parks.
void wait_for_the_page_lock() {
  std::unique_lock hold(page_allocator.pages.lock());
  std::atomic<pid_t> thread{0};
  std::thread waiting([&] {
    thread = gettid();
    by_free(by_malloc(200'000));
  });
  while (thread == 0 || !sleeps(thread)) {
    pause_ms(1);
  }
  hold.unlock();
  waiting.join();
}

// What a forked child mends: the rings of the depot, and what the janitor was at.
void fork_a_child() {
  hand_blocks_over();
  using namespace blockyard::heap;
  page_allocator.pages.allocate(16, 1, Prefer::ready, PageState::in_work);
  const pid_t child = fork();
  if (child == 0) {
    by_free(by_malloc(100));
    std::_Exit(by_heap_check() == nullptr ? 0 : 1);
  }
  int status = -1;
  waitpid(child, &status, 0);
  maintenance.forget();
  if (status != 0) {
    std::abort();
  }
}

// A thread that has ended leaves cached blocks and an empty slab of each class; they go back after an eighth of a
// second.
void end_a_thread() {
  std::thread([] {
    for (std::size_t size = 64; size <= 8'192; size *= 2) {
      free_all(allocated(500, size));
    }
  }).join();
  end_frames(1);
  pause_ms(200);
  end_frames(3);
}

void purge() {
  using namespace blockyard::heap;
  free_all(allocated(3, std::size_t{5} << 20));
  if (const PageRun run = page_allocator.pages.take_free(PageState::free_dirty); run.length != 0) {
    page_allocator.pages.free(run.first, PageState::free_dirty);
  }
}

// Work of every kind that a program can give the heap.
void everything() {
  by_heap_set(BY_HEAP_JANITOR, 0);
  // More than stands ready, and all of it back at once.
  std::vector<void*> blocks = allocated(200'000, 64);
  free_all(blocks);
  end_frames(1);
  pause_ms(40);
  end_frames(2);
  free_all(allocated(40, 1'000'000));
  by_heap_prefault(std::size_t{32} << 20);
  hand_blocks_over();
  by_heap_trim();
  use_arena();
  give_back();
  wait_for_the_page_lock();
  fork_a_child();
  end_a_thread();
  purge();
  end_frames(20);
}

constexpr std::array loops{
    "lists of remote frees adopted",
    "cached blocks trimmed",
    "magazines drained",
    "slots of a ring mended in a forked child",
    "runs in work given up in a forked child",
    "pages populated at once",
    "pages of a table populated",
    "lists searched for what to purge",
    "chunks given back at once",
    "cached blocks of a parked heap flushed",
    "empty slabs of a parked heap given back",
    "blocks of whole pages of an arena destroyed",
    "slabs of an arena destroyed",
};

class HeapBoundsDeathTest : public testing::TestWithParam<const char*> {
 protected:
  HeapBoundsDeathTest() { testing::FLAGS_gtest_death_test_style = "threadsafe"; }
};

TEST_P(HeapBoundsDeathTest, a_turn_too_many_of_the_loop_is_reported) {
  setenv(planted, GetParam(), 1);
  EXPECT_DEATH(everything(), std::string("more turns of a loop than stated: ") + GetParam());
  unsetenv(planted);
}

INSTANTIATE_TEST_SUITE_P(EveryLoop, HeapBoundsDeathTest, testing::ValuesIn(loops), [](const auto& one) {
  std::string name(one.param);
  std::replace_if(
      name.begin(), name.end(), [](unsigned char letter) { return std::isalnum(letter) == 0; }, '_');
  return name;
});

TEST(HeapBounds, no_loop_turns_more_often_than_stated) {
  for (int round = 0; round < 3; ++round) {
    everything();  // ends the program where one does
  }
  EXPECT_EQ(by_heap_check(), nullptr);
}

}  // namespace
