// StaticBlockAllocator across threads: remote frees, threads that end, chains, with random delays.
#include "block/pool.hpp"

#include <gtest/gtest.h>

#include <limits.h>
#include <pthread.h>

#include <atomic>
#include <barrier>
#include <condition_variable>
#include <cstring>
#include <mutex>
#include <random>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/process.hpp"
#include "blockyard/static_block_allocator.hpp"
#include "watched.hpp"

namespace blockyard {
namespace {

template <class Body>
void run_threads(unsigned count, Body&& body) {
  std::vector<std::thread> threads;
  for (unsigned i = 0; i < count; ++i) {
    threads.emplace_back([&body, i] { body(i); });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
}

template <class Blocks>
std::vector<void*> take(std::size_t count) {
  std::vector<void*> taken(count);
  for (void*& block : taken) {
    block = Blocks::allocate();
  }
  return taken;
}

template <class Blocks>
void free_all(const std::vector<void*>& taken) {
  for (void* const block : taken) {
    Blocks::free(block);
  }
}

/// Goes through rounds; returns the bytes that were held after the first `few` of them.
template <class Blocks, class Round>
std::size_t held_after_few(int few, int rounds, Round&& round) {
  std::size_t held = 0;
  for (int done = 1; done <= rounds; ++done) {
    round();
    if (done == few) {
      held = Blocks::statistics().held_bytes;
    }
  }
  return held;
}

/// Lets other threads run at random moments, so that short races become long.
class Delays {
 public:
  explicit Delays(unsigned seed) : random_(seed) {}
  void maybe() {
    const unsigned draw = static_cast<unsigned>(random_() % 1000);
    if (draw < 10) {
      std::this_thread::yield();
    } else if (draw == 10) {
      std::this_thread::sleep_for(std::chrono::microseconds(50));
    }
  }

 private:
  std::minstd_rand random_;
};

TEST(StaticBlocks, equal_strides_share_a_pool_and_others_do_not) {
  using A = StaticBlockAllocator<704, 4>;
  using B = StaticBlockAllocator<697, 8>;
  void* const block = A::allocate();
  EXPECT_EQ(B::statistics().live_blocks, 1u);
  EXPECT_EQ((StaticBlockAllocator<712, 8>::statistics().live_blocks), 0u);
  EXPECT_EQ((StaticBlockAllocator<700, 4>::statistics().live_blocks), 0u);
  B::free(block);
  EXPECT_EQ(A::statistics().live_blocks, 0u);
}

TEST(StaticBlocks, an_object_takes_no_space_in_a_container) {
  struct Container {
    void* first;
    [[no_unique_address]] TypedStaticBlockAllocator<std::string> allocator;
  };
  EXPECT_EQ(sizeof(Container), sizeof(void*));
}

TEST(StaticBlocks, typed_blocks_construct_and_destroy_and_survive_a_throwing_constructor) {
  struct Throws {
    explicit Throws(bool now) : text(200, 'x') {
      if (now) {
        throw std::runtime_error("now");
      }
    }
    std::string text;
    char padding[800] = {};
  };
  using Typed = TypedStaticBlockAllocator<Throws>;
  EXPECT_THROW(static_cast<void>(Typed::create(true)), std::runtime_error);
  EXPECT_EQ(Typed::Blocks::statistics().live_blocks, 0u);
  Throws* const made = Typed::create(false);
  EXPECT_EQ(made->text.size(), 200u);
  Typed::destroy(made);
  Typed::destroy(nullptr);
  EXPECT_EQ(Typed::Blocks::statistics().live_blocks, 0u);
}

TEST(StaticBlocks, over_aligned_blocks_are_aligned_on_every_thread) {
  run_threads(4, [](unsigned) {
    using Blocks = StaticBlockAllocator<72, 256>;
    std::vector<void*> taken;
    for (int i = 0; i < 1000; ++i) {
      taken.push_back(Blocks::allocate());
      ASSERT_EQ(reinterpret_cast<std::uintptr_t>(taken.back()) % 256, 0u);
    }
    free_all<Blocks>(taken);
  });
}

// Every thread allocates blocks, marks them, passes some to others and frees those it gets. No block has two owners at
// once.
TEST(StaticBlocks, blocks_wander_between_threads_and_none_is_given_out_twice) {
  constexpr unsigned threads = 4;
  constexpr int rounds = 60000;
  using Blocks = StaticBlockAllocator<88, 8>;
  struct Block {
    std::atomic<unsigned> users;
    unsigned char bytes[80];
  };
  struct Mailbox {
    std::mutex mutex;
    std::vector<Block*> blocks;
  };
  Mailbox mailboxes[threads];
  std::atomic<int> overlaps{0};
  const auto release = [&](Block* block) {
    overlaps += block->users.fetch_sub(1) != 1;
    Blocks::free(block);
  };
  run_threads(threads, [&](unsigned self) {
    Delays delays(self + 1);
    std::minstd_rand random(self + 100);
    std::vector<Block*> mine;
    for (int i = 0; i < rounds; ++i) {
      delays.maybe();
      if (random() % 2 == 0) {
        Block* const block = new (Blocks::allocate()) Block;
        overlaps += block->users.exchange(1) != 0;
        std::memset(block->bytes, static_cast<int>(self), sizeof block->bytes);
        mine.push_back(block);
      }
      if (!mine.empty() && random() % 3 == 0) {
        Mailbox& other = mailboxes[random() % threads];
        const std::lock_guard lock(other.mutex);
        other.blocks.push_back(mine.back());
        mine.pop_back();
      }
      std::vector<Block*> arrived;
      if (random() % 64 == 0) {
        const std::lock_guard lock(mailboxes[self].mutex);
        arrived.swap(mailboxes[self].blocks);
      }
      for (Block* const block : arrived) {
        release(block);
      }
      if (mine.size() > 5000) {
        release(mine.back());
        mine.pop_back();
      }
    }
    for (Block* const block : mine) {
      release(block);
    }
    EXPECT_TRUE(block::static_invariants_hold());
  });
  for (Mailbox& mailbox : mailboxes) {
    for (Block* const block : mailbox.blocks) {
      release(block);
    }
  }
  EXPECT_EQ(overlaps, 0);
  EXPECT_EQ(Blocks::statistics().live_blocks, 0u);
}

TEST(StaticBlocks, memory_freed_by_other_threads_is_used_again) {
  SKIP_IF_WATCHED();
  using Blocks = StaticBlockAllocator<104, 8>;
  const std::size_t held = held_after_few<Blocks>(1, 20, [] {
    const std::vector<void*> taken = take<Blocks>(50000);
    run_threads(3, [&](unsigned self) {
      for (std::size_t i = self; i < taken.size(); i += 3) {
        Blocks::free(taken[i]);
      }
    });
  });
  EXPECT_EQ(Blocks::statistics().live_blocks, 0u);
  EXPECT_LE(Blocks::statistics().held_bytes, 2 * held);
}

TEST(StaticBlocks, a_thread_allocates_the_block_of_another_that_it_just_freed) {
  SKIP_IF_WATCHED();
  using Blocks = StaticBlockAllocator<200, 8>;
  void* const block = Blocks::allocate();
  std::thread([block] {
    void* const own = Blocks::allocate();
    Blocks::free(block);
    EXPECT_TRUE(block::static_invariants_hold());
    void* const again = Blocks::allocate();
    EXPECT_EQ(again, block);
    EXPECT_EQ(Blocks::statistics().live_blocks, 2u);
    Blocks::free(again);
    Blocks::free(own);
    EXPECT_TRUE(block::static_invariants_hold());
    EXPECT_EQ(Blocks::statistics().live_blocks, 0u);
  }).join();
  EXPECT_EQ(Blocks::statistics().live_blocks, 0u);
}

// Two threads exchange all their blocks in each round, fewer and more than the pools keep.
TEST(StaticBlocks, threads_that_free_each_others_blocks_take_no_more_memory_and_trim_gives_all_back) {
  SKIP_IF_WATCHED();
  using Blocks = StaticBlockAllocator<216, 8>;
  const std::size_t held = held_after_few<Blocks>(5, 30, [] {
    std::vector<void*> taken[2];
    std::barrier exchanged(2);
    run_threads(2, [&](unsigned self) {
      for (const std::size_t count : {10u, 100u, 3000u, 30000u}) {
        taken[self] = take<Blocks>(count);
        exchanged.arrive_and_wait();
        free_all<Blocks>(taken[1 - self]);
        EXPECT_TRUE(block::static_invariants_hold());
        exchanged.arrive_and_wait();
      }
    });
    EXPECT_EQ(Blocks::statistics().live_blocks, 0u);
  });
  EXPECT_LE(Blocks::statistics().held_bytes, 2 * held);
  by_static_block_trim();
  EXPECT_EQ(Blocks::statistics().held_bytes, 0u);
}

TEST(StaticBlocks, a_thread_that_starts_takes_over_what_an_ended_one_left) {
  SKIP_IF_WATCHED();
  using Blocks = StaticBlockAllocator<120, 8>;
  const std::size_t held =
      held_after_few<Blocks>(1, 30, [] { std::thread([] { free_all<Blocks>(take<Blocks>(20000)); }).join(); });
  EXPECT_LE(Blocks::statistics().held_bytes, held);
}

#if !defined(__SANITIZE_THREAD__)  // which has forgotten the thread by its last round
// POSIX calls this again as long as it sets a value, in at least four rounds, and in the last one after the pools' own:
// nobody tells them that the thread has ended.
using LateBlocks = StaticBlockAllocator<2736, 8>;
pthread_key_t allocates_in_all_rounds;
void allocate_and_ask_again(void* rounds) {
  free_all<LateBlocks>(take<LateBlocks>(50));
  ++*static_cast<int*>(rounds);
  pthread_setspecific(allocates_in_all_rounds, rounds);
}

TEST(StaticBlocks, destructors_that_allocate_in_a_threads_last_round_leave_nothing_behind) {
  SKIP_IF_WATCHED();
  free_all<LateBlocks>(take<LateBlocks>(1));  // the pools have their key before this one is made
  ASSERT_EQ(pthread_key_create(&allocates_in_all_rounds, allocate_and_ask_again), 0);
  const std::size_t held = held_after_few<LateBlocks>(5, 60, [] {
    int rounds = 0;
    int thread = 0;
    std::thread([&] {
      thread = base::thread_id();
      pthread_setspecific(allocates_in_all_rounds, &rounds);
    }).join();
    ASSERT_GE(rounds, PTHREAD_DESTRUCTOR_ITERATIONS);
    while (!base::thread_has_ended(thread)) {  // for the system it may still be there after the join, in qemu mostly
      std::this_thread::yield();
    }
  });
  EXPECT_LE(LateBlocks::statistics().held_bytes, held);
  pthread_key_delete(allocates_in_all_rounds);
}
#endif

TEST(StaticBlocks, a_running_thread_adopts_pages_of_ended_ones_before_it_takes_fresh_ones) {
  SKIP_IF_WATCHED();
  using Blocks = StaticBlockAllocator<136, 8>;
  Blocks::free(Blocks::allocate());  // this thread has its own state, so it cannot take over another's whole
  run_threads(4, [](unsigned) { free_all<Blocks>(take<Blocks>(30000)); });
  const std::size_t held = Blocks::statistics().held_bytes;
  const std::vector<void*> taken = take<Blocks>(10000);
  EXPECT_LE(Blocks::statistics().held_bytes, held + (std::size_t{1} << 18));
  free_all<Blocks>(taken);
  EXPECT_TRUE(block::static_invariants_hold());
}

TEST(StaticBlocks, blocks_of_an_ended_thread_are_freed_and_its_pages_used) {
  using Blocks = StaticBlockAllocator<152, 8>;
  std::vector<void*> taken;
  std::thread([&] { taken = take<Blocks>(20000); }).join();
  free_all<Blocks>(taken);
  EXPECT_EQ(Blocks::statistics().live_blocks, 0u);
  by_static_block_trim();
  if (!block::process_is_watched()) {
    EXPECT_EQ(Blocks::statistics().held_bytes, 0u) << "trim gives back what ended threads left";
  }
}

TEST(StaticBlocks, threads_come_and_go_while_others_free_their_blocks) {
  using Blocks = StaticBlockAllocator<168, 8>;
  std::mutex mutex;
  std::vector<void*> shared;
  std::atomic<bool> done{false};
  std::thread freer([&] {
    Delays delays(9);
    for (;;) {
      const bool last = done;
      std::vector<void*> taken;
      {
        const std::lock_guard lock(mutex);
        taken.swap(shared);
      }
      for (void* const block : taken) {
        Blocks::free(block);
        delays.maybe();
      }
      if (last) {
        return;
      }
      std::this_thread::yield();
    }
  });
  for (int generation = 0; generation < 40; ++generation) {
    run_threads(2, [&](unsigned self) {
      Delays delays(self + static_cast<unsigned>(generation));
      for (int i = 0; i < 1000; ++i) {
        void* const block = Blocks::allocate();
        delays.maybe();
        const std::lock_guard lock(mutex);
        shared.push_back(block);
      }
    });
  }
  done = true;
  freer.join();
  EXPECT_EQ(Blocks::statistics().live_blocks, 0u);
}

TEST(StaticBlocks, a_chain_freed_on_one_thread_serves_another) {
  SKIP_IF_WATCHED();
  using Blocks = StaticBlockAllocator<184, 8>;
  const std::size_t held = held_after_few<Blocks>(1, 20, [] {
    const std::vector<void*> taken = take<Blocks>(10000);
    for (std::size_t i = 0; i + 1 < taken.size(); ++i) {
      block::set_chain_next(taken[i], taken[i + 1], Blocks::stride);
    }
    std::thread([&] { Blocks::free_chain(taken.front(), taken.back(), taken.size()); }).join();
    EXPECT_EQ(Blocks::statistics().live_blocks, 0u);
  });
  EXPECT_EQ(Blocks::statistics().held_bytes, held);
  by_static_block_trim();
  EXPECT_EQ(Blocks::statistics().held_bytes, 0u);
}

}  // namespace
}  // namespace blockyard
