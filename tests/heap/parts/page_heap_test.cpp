// The page heap alone, driven at random against a plain map of which pages are taken.
#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <map>
#include <mutex>
#include <random>
#include <set>
#include <thread>
#include <vector>

#include "heap/slab_tables.hpp"
#include "pages/page_heap.hpp"

namespace {

using namespace blockyard::heap;

constexpr auto chunk = static_cast<std::uint32_t>(pages_per_chunk);

// One for all tests: it goes by the tags of the one region.
class PageHeapTest : public testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(reserve_region(false)); }
  static inline constinit PageHeap pages{region};
};

using Runs = std::map<std::uint32_t, std::uint32_t>;  // first page to length

bool add(Runs& taken, const PageRun& run) {
  const auto after = taken.lower_bound(run.first);
  if ((after != taken.end() && after->first < run.first + run.length) ||
      (after != taken.begin() && std::prev(after)->first + std::prev(after)->second > run.first)) {
    return false;
  }
  taken[run.first] = run.length;
  return true;
}

TEST_F(PageHeapTest, random_runs_never_overlap_and_the_tags_stay_true) {
  std::mt19937 engine(12345);
  const auto random = [&engine] { return static_cast<std::uint32_t>(engine()); };
  Runs taken;
  std::set<std::uint32_t> in_work;  // of these
  for (int step = 0; step < 20'000; ++step) {
    if (taken.size() < 300 && random() % 2 == 0) {
      const std::uint32_t length = 1 + random() % (random() % 10 == 0 ? 3000 : 40);
      const std::uint32_t alignment = 1u << (random() % 7);
      const PageRun run = pages.allocate(length, alignment, static_cast<Prefer>(random() % 4), PageState::used_block);
      ASSERT_EQ(run.length, length);
      ASSERT_EQ(run.first % alignment, 0u);
      ASSERT_TRUE(add(taken, run));
    } else if (random() % 8 == 0) {  // as the janitor purges
      PageRun run = pages.take_free(random() % 2 == 0 ? PageState::free_ready : PageState::free_dirty,
                                    random() % 2 == 0 ? PageHeap::no_limit : 1 + random() % 2000);
      if (run) {
        run = pages.with_decommitted_neighbours(run);
        ASSERT_TRUE(add(taken, run));
        in_work.insert(run.first);
      }
    } else if (!taken.empty()) {
      const auto victim = std::next(taken.begin(), static_cast<std::ptrdiff_t>(random() % taken.size()));
      const std::uint32_t longer = victim->second + 1 + random() % 20;
      const bool used = in_work.count(victim->first) == 0;
      if (used && random() % 8 == 0 && victim->second > 1) {
        pages.shrink(victim->first, victim->second / 2, PageState::free_dirty);
        victim->second /= 2;
      } else if (used && random() % 8 == 0 && pages.grow(victim->first, longer, random() % 2 == 0)) {
        victim->second = longer;
      } else {
        static constexpr PageState states[] = {PageState::free_ready, PageState::free_dirty,
                                               PageState::free_decommitted};
        pages.free(victim->first, states[random() % 3]);
        in_work.erase(victim->first);
        taken.erase(victim);
      }
    }
    if (step % 500 == 0) {
      ASSERT_EQ(pages.check(), nullptr) << "at step " << step;
    }
  }
  for (const auto& [first, length] : taken) {
    pages.free(first, PageState::free_dirty);
  }
  EXPECT_EQ(pages.check(), nullptr);
}

TEST_F(PageHeapTest, the_walker_finds_a_tag_that_was_overwritten) {
  const PageRun run = pages.allocate(10, 1, Prefer::ready, PageState::used_block);
  PageTag& tail = region.pages[run.first + 9];
  const std::uint32_t length = tail.length;
  tail.length = 4711;
  EXPECT_NE(pages.check(), nullptr);
  tail.length = length;
  pages.free(run.first, PageState::free_ready);
  EXPECT_EQ(pages.check(), nullptr);
}

// The reserve's lowest point is what the program took at most before it gave some back.
TEST_F(PageHeapTest, remembers_how_low_the_reserve_was) {
  const PageRun reserve = pages.allocate(4 * chunk, chunk, Prefer::decommitted, PageState::in_work);
  pages.free(reserve.first, PageState::free_ready);
  pages.take_lowest();
  const std::uint64_t before = pages.pages_in_reserve();
  ASSERT_GE(before, 2 * PageHeap::reserve_run);
  const PageRun run = pages.allocate(PageHeap::reserve_run, 1, Prefer::ready, PageState::used_block);
  ASSERT_EQ(run.from, PageState::free_ready);
  pages.free(run.first, PageState::free_ready);
  const std::uint64_t lowest = pages.take_lowest().reserve;
  EXPECT_LE(lowest, before - PageHeap::reserve_run);
  EXPECT_GE(lowest, before - 2 * PageHeap::reserve_run);  // merging runs and cutting them is no fall
  EXPECT_EQ(pages.take_lowest().reserve, pages.pages_in_reserve());
}

// As the janitor leaves what a program at its limit freed: slabs that it cut lie populated in the middle of others.
TEST_F(PageHeapTest, runs_of_different_states_merge_where_nothing_else_is_long_enough) {
  const std::size_t most = region.most_bytes;
  region.most_bytes = std::max<std::size_t>(pages.totals().top, 4 * chunk) << page_shift;
  Runs taken;
  for (const std::uint32_t length : {chunk, 32u, 1u}) {
    for (PageRun run = pages.allocate(length, 1, Prefer::ready, PageState::used_block); run;
         run = pages.allocate(length, 1, Prefer::ready, PageState::used_block)) {
      ASSERT_TRUE(add(taken, run));
    }
  }
  const auto freed = std::find_if(taken.begin(), taken.end(), [](const auto& run) { return run.second == chunk; });
  ASSERT_NE(freed, taken.end());
  pages.shrink(freed->first, 2 * chunk / 3, PageState::free_dirty);
  pages.shrink(freed->first, chunk / 3, PageState::free_ready);
  pages.free(freed->first, PageState::free_decommitted);
  EXPECT_FALSE(pages.allocate(chunk, 1, Prefer::ready, PageState::used_block));
  EXPECT_EQ(pages.allocate_merged(chunk, 1, PageState::used_block).first, freed->first);
  EXPECT_EQ(pages.check(), nullptr);
  for (const auto& [first, length] : taken) {
    pages.free(first, PageState::free_dirty);
  }
  region.most_bytes = most;
}

// In place out of what lies behind it, in whatever states; at the end of what is used by as much as is short.
TEST_F(PageHeapTest, a_run_grows_through_free_runs_of_different_states_and_beyond_the_end) {
  const PageRun run =
      pages.allocate(64 * chunk, 1, Prefer::ready, PageState::used_block);  // none is as long: at the end
  ASSERT_TRUE(run);
  const std::uint32_t end = static_cast<std::uint32_t>(pages.totals().top);
  ASSERT_TRUE(pages.grow(run.first, end - run.first, false));
  pages.shrink(run.first, 63 * chunk, PageState::free_decommitted);
  pages.shrink(run.first, 62 * chunk, PageState::free_ready);
  pages.shrink(run.first, 61 * chunk, PageState::free_dirty);
  EXPECT_FALSE(pages.grow(run.first, 62 * chunk, true)) << "what is behind it is not populated";
  EXPECT_TRUE(pages.grow(run.first, 62 * chunk + 1, false));
  EXPECT_EQ(pages.check(), nullptr);
  EXPECT_TRUE(pages.grow(run.first, end - run.first + 5 * chunk, false));
  EXPECT_EQ(pages.check(), nullptr);
  EXPECT_EQ(region.pages[run.first].length, end - run.first + 5 * chunk);
  pages.free(run.first, PageState::free_dirty);
  EXPECT_EQ(pages.check(), nullptr);
}

// In a forked child nobody is left to give them back: neither what was being populated nor what was being purged, alone
// or with the pages beside it.
TEST_F(PageHeapTest, abandoned_work_is_free_again) {
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(pages.allocate(chunk, chunk, Prefer::decommitted, PageState::in_work));
  }
  // Twenty pages of a chunk whose others are decommitted.
  const PageRun cut = pages.allocate(chunk, chunk, Prefer::decommitted, PageState::used_block);
  ASSERT_TRUE(cut);
  pages.shrink(cut.first, 120, PageState::free_decommitted);
  pages.shrink(cut.first, 100, PageState::free_dirty);
  pages.free(cut.first, PageState::free_decommitted);
  bool with_neighbours = false;
  // Other tests may have left longer runs, which have their turn first.
  for (PageRun run = pages.take_free(PageState::free_dirty); run; run = pages.take_free(PageState::free_dirty)) {
    run = pages.with_decommitted_neighbours(run);
    with_neighbours = with_neighbours || (run.first < cut.first + 100 && run.first + run.length > cut.first + 120);
  }
  EXPECT_TRUE(with_neighbours);
  EXPECT_GE(pages.totals().in_work, 3 * chunk);
  EXPECT_EQ(pages.check(), nullptr);

  pages.abandon_work();
  EXPECT_EQ(pages.totals().in_work, 0u);
  EXPECT_GE(pages.totals().dirty, 3 * chunk);
  EXPECT_EQ(pages.check(), nullptr);
  // And it serves again.
  const PageRun again = pages.allocate(chunk, chunk, Prefer::dirty, PageState::used_block);
  EXPECT_EQ(again.from, PageState::free_dirty);
  pages.free(again.first, PageState::free_dirty);
}

// What is purged last: a few pages that keep a chunk from being whole. Others as short serve what fits them, and stay.
TEST_F(PageHeapTest, a_short_run_is_taken_only_beside_decommitted_pages) {
  while (pages.take_free(PageState::free_dirty)) {  // what other tests left is in work until the end
  }
  std::vector<std::uint32_t> holes;  // of six pages, between pages in use
  for (int hole = 0; hole < 10; ++hole) {
    const PageRun run = pages.allocate(6, 1, Prefer::decommitted, PageState::used_block);
    ASSERT_TRUE(run);
    const PageRun behind = pages.allocate(1, 1, Prefer::decommitted, PageState::used_block);
    if (behind.first == run.first + 6) {  // not where another test left a gap that just fits
      holes.push_back(run.first);
    }
  }
  // As many pages of a chunk whose others are decommitted.
  const PageRun cut = pages.allocate(chunk, chunk, Prefer::decommitted, PageState::used_block);
  ASSERT_TRUE(cut);
  pages.shrink(cut.first, 206, PageState::free_decommitted);
  pages.shrink(cut.first, 200, PageState::free_dirty);
  for (const std::uint32_t hole : holes) {
    pages.free(hole, PageState::free_dirty);
  }
  EXPECT_EQ(pages.check(), nullptr);
  bool cut_was_taken = false;
  for (PageRun run = pages.take_free(PageState::free_dirty); run; run = pages.take_free(PageState::free_dirty)) {
    EXPECT_GT(pages.with_decommitted_neighbours(run).length, run.length);
    EXPECT_EQ(std::count(holes.begin(), holes.end(), run.first), 0);
    cut_was_taken = cut_was_taken || run.first == cut.first + 200;
  }
  EXPECT_TRUE(cut_was_taken);
  pages.abandon_work();
  EXPECT_EQ(pages.check(), nullptr);
}

// Whoever holds it sleeps now and then, so that the others park. A wake-up that the unlocking thread owes and never
// gives would cost each of them its whole longest sleep; none at all, and the test would not end.
TEST(PageLock, threads_that_park_are_let_in_one_by_one_and_keep_errno) {
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

// As the window of the block allocators has two in one region that is reserved whole.
TEST(PageHeapOpened, two_in_one_region_keep_to_their_pages_and_merge_what_comes_back) {
  std::vector<PageTag> tags(4'096);
  Region region;
  region.pages = tags.data();
  PageHeap near(region);
  PageHeap far(region);
  near.open(256, 2'048);
  far.open(2'048 + 256, 4'096);
  std::mt19937 engine(4711);
  for (PageHeap* const pages : {&near, &far}) {
    Runs taken;
    std::uint32_t sum = 0;
    for (std::uint32_t length = 1u << engine() % 9;; length = 1u << engine() % 9) {
      const PageRun run = pages->allocate(length, length, Prefer::decommitted, PageState::used_slab);
      if (!run) {
        break;
      }
      ASSERT_EQ(run.first % length, 0u);
      ASSERT_GE(run.first, pages == &near ? 256u : 2'304u);
      ASSERT_LE(run.first + length, pages == &near ? 2'048u : 4'096u);
      ASSERT_TRUE(add(taken, run));
      sum += length;
    }
    EXPECT_GT(sum, 1'000u);
    for (const auto& [first, length] : taken) {
      pages->free(first, PageState::free_decommitted);
    }
    EXPECT_EQ(pages->check(), nullptr);
    EXPECT_TRUE(pages->allocate(1'024, 1'024, Prefer::decommitted, PageState::used_slab));
  }
}

}  // namespace
