// The page heap alone, driven at random against a plain map of which pages are taken.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <map>
#include <mutex>
#include <random>
#include <set>
#include <thread>
#include <vector>

#include "blockyard/heap.h"
#include "heap/page_heap.hpp"
#include "heap/page_lock.hpp"
#include "heap/process_heap.hpp"

namespace {

using namespace blockyard::heap;

TEST(PageHeap, RandomRunsNeverOverlapAndTheTagsStayTrue) {
  ASSERT_TRUE(process_heap.initialise());
  std::mt19937 engine(12345);
  const auto random = [&engine] { return static_cast<std::uint32_t>(engine()); };
  std::map<std::uint32_t, std::uint32_t> taken;  // first page to length
  std::set<std::uint32_t> in_work;               // of these
  const auto take = [&taken](const PageRun& run) {
    const auto after = taken.lower_bound(run.first);
    ASSERT_TRUE(after == taken.end() || after->first >= run.first + run.length);
    ASSERT_TRUE(after == taken.begin() || std::prev(after)->first + std::prev(after)->second <= run.first);
    taken[run.first] = run.length;
  };
  for (int step = 0; step < 20'000; ++step) {
    if (taken.size() < 300 && random() % 2 == 0) {
      const std::uint32_t length = 1 + random() % (random() % 10 == 0 ? 3000 : 40);
      const std::uint32_t alignment = 1u << (random() % 7);
      const PageRun run =
          process_heap.pages.allocate(length, alignment, static_cast<Prefer>(random() % 3), PageState::used_block);
      ASSERT_EQ(run.length, length);
      ASSERT_EQ(run.first % alignment, 0u);
      take(run);
    } else if (random() % 8 == 0) {  // as the janitor purges
      PageRun run = process_heap.pages.take_free(random() % 2 == 0 ? PageState::free_ready : PageState::free_stale,
                                                 random() % 2 == 0 ? PageHeap::no_limit : 1 + random() % 2000);
      if (run.length != 0) {
        run = process_heap.pages.with_raw_neighbours(run);
        take(run);
        in_work.insert(run.first);
      }
    } else if (!taken.empty()) {
      auto victim = std::next(taken.begin(), static_cast<std::ptrdiff_t>(random() % taken.size()));
      const std::uint32_t longer = victim->second + 1 + random() % 20;
      const bool used = in_work.count(victim->first) == 0;
      if (used && random() % 8 == 0 && victim->second > 1) {
        process_heap.pages.shrink(victim->first, victim->second / 2, PageState::free_stale);
        victim->second /= 2;
      } else if (used && random() % 8 == 0 && process_heap.pages.grow(victim->first, longer)) {
        victim->second = longer;
      } else {
        static constexpr PageState states[] = {PageState::free_ready, PageState::free_stale, PageState::free_raw};
        process_heap.pages.free(victim->first, states[random() % 3]);
        in_work.erase(victim->first);
        taken.erase(victim);
      }
    }
    if (step % 500 == 0) {
      ASSERT_EQ(process_heap.pages.check(), nullptr) << "at step " << step;
    }
  }
  for (const auto& [first, length] : taken) {
    process_heap.pages.free(first, PageState::free_stale);
  }
  EXPECT_EQ(process_heap.pages.check(), nullptr);
}

TEST(PageHeap, TheWalkerFindsATagThatWasOverwritten) {
  ASSERT_TRUE(process_heap.initialise());
  const PageRun run = process_heap.pages.allocate(10, 1, Prefer::ready, PageState::used_block);
  PageTag& tail = region.pages[run.first + 9];
  const std::uint32_t length = tail.length;
  tail.length = 4711;
  EXPECT_NE(process_heap.pages.check(), nullptr);
  tail.length = length;
  process_heap.pages.free(run.first, PageState::free_ready);
  EXPECT_EQ(process_heap.pages.check(), nullptr);
}

// The reserve's lowest point is what the program took at most before it gave some back.
TEST(PageHeap, RemembersHowLowTheReserveWas) {
  ASSERT_EQ(by_heap_prefault(std::size_t{8} << 20), 0);
  by_heap_set(BY_HEAP_JANITOR, 0);
  PageHeap& pages = process_heap.pages;
  pages.take_lowest();
  const std::uint64_t before = pages.reserve_pages();
  ASSERT_GE(before, 2 * PageHeap::reserve_run);
  const PageRun run = pages.allocate(PageHeap::reserve_run, 1, Prefer::ready, PageState::used_block);
  ASSERT_EQ(run.from, PageState::free_ready);
  pages.free(run.first, PageState::free_ready);
  const std::uint64_t lowest = pages.take_lowest().reserve;
  EXPECT_LE(lowest, before - PageHeap::reserve_run);
  EXPECT_GE(lowest, before - 2 * PageHeap::reserve_run);  // merging runs and cutting them is no fall
  EXPECT_EQ(pages.take_lowest().reserve, pages.reserve_pages());
  by_heap_set(BY_HEAP_JANITOR, 1);
}

// In a child nobody is left to give them back: neither what was being populated nor what was being purged, alone or with
// the raw pages beside it.
TEST(PageHeap, WhatWasInWorkAtAForkIsFreeInTheChild) {
  ASSERT_TRUE(process_heap.initialise());
  PageHeap& pages = process_heap.pages;
  constexpr auto chunk = static_cast<std::uint32_t>(pages_per_chunk);
  std::vector<PageRun> in_work;
  for (int i = 0; i < 3; ++i) {
    in_work.push_back(pages.allocate(chunk, chunk, Prefer::raw, PageState::in_work));
  }
  // Twenty pages of a chunk whose others are raw.
  const PageRun cut = pages.allocate(chunk, chunk, Prefer::raw, PageState::used_block);
  ASSERT_EQ(cut.length, chunk);
  pages.shrink(cut.first, 120, PageState::free_raw);
  pages.shrink(cut.first, 100, PageState::free_stale);
  pages.free(cut.first, PageState::free_raw);
  bool with_neighbours = false;
  // Other tests may have left longer runs, which have their turn first.
  for (int looks = 0; looks < 50'000 && !with_neighbours; ++looks) {
    PageRun run = pages.take_free(PageState::free_stale);
    if (run.length != 0) {
      run = pages.with_raw_neighbours(run);
      in_work.push_back(run);
      with_neighbours = run.first < cut.first + 100 && run.first + run.length > cut.first + 120;
    }
  }
  for (const PageRun& run : in_work) {
    ASSERT_NE(run.length, 0u);
  }
  EXPECT_TRUE(with_neighbours);

  const pid_t child = fork();
  if (child == 0) {
    const PageHeap::Totals totals = pages.totals();
    const bool counted = totals.in_work == 0 && totals.stale >= 3 * chunk;
    const bool sound = pages.check() == nullptr;
    // And they serve again.
    const PageRun again = pages.allocate(chunk, chunk, Prefer::stale, PageState::used_block);
    _exit(!counted ? 1 : !sound ? 2 : again.from != PageState::free_stale ? 3 : 0);
  }
  int status = 1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  // In the parent they are still whose they were.
  EXPECT_GE(pages.totals().in_work, 3 * chunk);
  for (const PageRun& run : in_work) {
    pages.free(run.first, PageState::free_stale);
  }
  EXPECT_EQ(pages.check(), nullptr);
}

// What is purged last: a few pages that keep a chunk from being whole. Others as short serve what fits them, and stay.
TEST(PageHeap, a_short_run_is_taken_only_beside_raw_pages) {
  ASSERT_TRUE(process_heap.initialise());
  by_heap_set(BY_HEAP_JANITOR, 0);
  PageHeap& pages = process_heap.pages;
  while (pages.take_free(PageState::free_stale).length != 0) {  // what other tests left is in work until the end
  }
  std::vector<std::uint32_t> holes;  // of six pages, between pages in use
  for (int hole = 0; hole < 10; ++hole) {
    const PageRun run = pages.allocate(6, 1, Prefer::raw, PageState::used_block);
    ASSERT_EQ(run.length, 6u);
    const PageRun behind = pages.allocate(1, 1, Prefer::raw, PageState::used_block);
    if (behind.first == run.first + 6) {  // not where another test left a gap that just fits
      holes.push_back(run.first);
    }
  }
  // As many pages of a chunk whose others are raw.
  constexpr auto chunk = static_cast<std::uint32_t>(pages_per_chunk);
  const PageRun cut = pages.allocate(chunk, chunk, Prefer::raw, PageState::used_block);
  ASSERT_EQ(cut.length, chunk);
  pages.shrink(cut.first, 206, PageState::free_raw);
  pages.shrink(cut.first, 200, PageState::free_stale);
  for (const std::uint32_t hole : holes) {
    pages.free(hole, PageState::free_stale);
  }
  EXPECT_EQ(pages.check(), nullptr);
  bool cut_was_taken = false;
  for (PageRun run = pages.take_free(PageState::free_stale); run.length != 0;
       run = pages.take_free(PageState::free_stale)) {
    EXPECT_GT(pages.with_raw_neighbours(run).length, run.length);
    EXPECT_EQ(std::count(holes.begin(), holes.end(), run.first), 0);
    cut_was_taken = cut_was_taken || run.first == cut.first + 200;
  }
  EXPECT_TRUE(cut_was_taken);
  pages.abandon_work();
  EXPECT_EQ(pages.check(), nullptr);
  by_heap_set(BY_HEAP_JANITOR, 1);
}

// Whoever holds it sleeps now and then, so that the others park. A wake-up that the unlocking thread owes and never
// gives would cost each of them its whole longest sleep; none at all, and the test would not end.
TEST(PageLock, ThreadsThatParkAreLetInOneByOneAndKeepErrno) {
  PageLock lock;
  int guarded = 0;
  bool kept_errno = true;
  constexpr int threads = 4;
  constexpr int rounds = 2'000;
  std::vector<std::thread> workers;
  for (int worker = 0; worker < threads; ++worker) {
    workers.emplace_back([&] {
      for (int round = 0; round < rounds; ++round) {
        errno = 77;
        const std::lock_guard hold(lock);
        kept_errno = kept_errno && errno == 77;
        if (++guarded % 100 == 0) {
          std::this_thread::sleep_for(std::chrono::microseconds(300));
        }
      }
    });
  }
  for (std::thread& worker : workers) {
    worker.join();
  }
  EXPECT_EQ(guarded, threads * rounds);
  EXPECT_TRUE(kept_errno);
}

}  // namespace
