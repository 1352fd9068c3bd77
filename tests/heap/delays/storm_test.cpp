// Every way in which threads meet inside the heap, at once, with a random delay at every atomic operation
// (base/atomic.hpp): remote frees and their adoption, threads that come and go, arenas made and destroyed, trims,
// frame ends and the janitor. A nanosecond's window becomes microseconds. The same program is built with
// ThreadSanitizer too.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cstring>
#include <random>
#include <thread>
#include <vector>

#include "blockyard/heap.h"

namespace {

// A block that knows its size and is filled with one byte, so that whoever frees it can tell whether somebody wrote to
// it.
struct Note {
  std::uint32_t size;
  unsigned char fill;
};

unsigned char* write_block(void* memory, std::size_t size, unsigned char fill) {
  auto* const block = static_cast<unsigned char*>(memory);
  std::memset(block, fill, size);
  const Note note{static_cast<std::uint32_t>(size), fill};
  std::memcpy(block, &note, sizeof note);
  return block;
}

bool is_intact(const unsigned char* block) {
  Note note;
  std::memcpy(&note, block, sizeof note);
  for (std::size_t i = sizeof note; i < note.size; ++i) {
    if (block[i] != note.fill) {
      return false;
    }
  }
  return true;
}

class Storm {
 public:
  void run(unsigned threads, int steps) {
    std::vector<std::thread> running;
    for (unsigned seed = 1; seed <= threads; ++seed) {
      running.emplace_back([this, seed, steps] { work(seed, steps); });
    }
    for (std::thread& thread : running) {
      thread.join();
    }
    for (auto& slot : slots_) {
      by_free(slot.exchange(nullptr));
    }
  }

  int changed() const { return changed_.load(); }

 private:
  void work(unsigned seed, int steps) {
    std::mt19937 random(seed);
    by_arena* arena = nullptr;
    for (int step = 0; step < steps; ++step) {
      const std::size_t size = sizeof(Note) + (random() % 40 == 0 ? random() % 80'000 : random() % 500);
      switch (random() % 100) {
        case 0: {
          // A short-lived thread takes over a parked heap and leaves blocks in it.
          std::thread([this, &random, size] { exchange(by_malloc(size), size, random); }).join();
          break;
        }
        case 1:
          by_heap_trim();
          break;
        case 2:
          by_heap_reserve(random() % (std::size_t{8} << 20));
          break;
        case 3:
          by_heap_frame_end(100'000);
          break;
        case 4:
          by_arena_destroy(arena);
          arena = by_arena_create();
          break;
        case 5:
        case 6:
        case 7:
          if (arena != nullptr) {
            write_block(by_arena_alloc(arena, size), size, 5);
          }
          break;
        case 8:
        case 9: {
          void* const block = write_block(by_malloc(size), size, 9);
          by_free(by_realloc(block, size * 2));
          break;
        }
        default:
          exchange(by_malloc(size), size, random);
          break;
      }
    }
    by_arena_destroy(arena);
  }

  void exchange(void* memory, std::size_t size, std::mt19937& random) {
    unsigned char* const block = write_block(memory, size, static_cast<unsigned char>(random()));
    unsigned char* const other = slots_[random() % slots_.size()].exchange(block, std::memory_order_acq_rel);
    if (other != nullptr) {
      changed_.fetch_add(is_intact(other) ? 0 : 1);
      by_free(other);
    }
  }

  std::array<std::atomic<unsigned char*>, 256> slots_{};
  std::atomic<int> changed_{0};
};

TEST(HeapWithDelays, no_block_is_lost_shared_or_changed_whatever_threads_meet_where) {
  by_heap_reserve(0);
  for (int round = 0; round < 3; ++round) {
    Storm storm;
    storm.run(4, 20'000);
    ASSERT_EQ(storm.changed(), 0);
  }
  // The janitor still runs and takes the page heap's lock like everybody; the walker needs the world to stand still
  // only where the program's threads are concerned, and they have ended.
  EXPECT_EQ(by_heap_check(), nullptr);
}

// The janitor's work is one thread's at a time, also while it is switched off and on: its last round may go on while
// frames end on several threads, each of which would do its work.
TEST(HeapWithDelays, frames_end_on_several_threads_while_the_janitor_is_switched_off_and_on) {
  std::vector<std::thread> running;
  for (unsigned seed = 1; seed <= 3; ++seed) {
    running.emplace_back([seed] {
      std::mt19937 random(seed);
      for (int frame = 0; frame < 2'000; ++frame) {
        if (random() % 50 == 0) {
          EXPECT_EQ(by_heap_set(BY_HEAP_JANITOR, random() % 3 == 0 ? 1 : 0), 0);
          by_heap_reserve(random() % (std::size_t{8} << 20));
        }
        void* const block = by_malloc(random() % 80'000);
        by_heap_frame_end(50'000);
        by_free(block);
      }
    });
  }
  for (std::thread& thread : running) {
    thread.join();
  }
  EXPECT_EQ(by_heap_set(BY_HEAP_JANITOR, 1), 0);
  by_heap_reserve(0);
  EXPECT_EQ(by_heap_check(), nullptr);
}

}  // namespace
