// Threads: maps filled on eight at once; blocks allocated on one and freed on seven; two that free each other's blocks;
// a map moved to another thread and refilled.
#include <algorithm>
#include <atomic>
#include <barrier>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>
#include <unordered_map>

#include "blockyard/hash_map.hpp"
#include "blockyard/heap.h"
#include "blockyard/static_block_allocator.hpp"
#include "case.hpp"

namespace blockyard::bench {
namespace {

constexpr unsigned threads = 8;

template <class Map, class Enter>
void fill_on_eight(std::size_t n, Enter&& enter) {
  for (const char* const name : {"fill", "fill_warm"}) {
    phase(name, n * threads, [&] {
      std::vector<std::thread> running;
      for (unsigned t = 0; t < threads; ++t) {
        running.emplace_back([&] {
          Map map;
          for (std::size_t i = 0; i < n; ++i) {
            enter(map, static_cast<int>(i));
          }
        });
      }
      for (std::thread& thread : running) {
        thread.join();
      }
    });
  }
}

void run_hash_map(std::size_t n) {
  fill_on_eight<HashMap<int, int>>(n, [](auto& map, int key) { map.insert(key, key); });
}
void run_hash_map_malloc(std::size_t n) {
  using Map = HashMap<int, int, HasherDefault, ComparatorDefault<int>, MallocBlocks>;
  fill_on_eight<Map>(n, [](auto& map, int key) { map.insert(key, key); });
}
void run_unordered(std::size_t n) {
  fill_on_eight<std::unordered_map<int, int>>(n, [](auto& map, int key) { map.emplace(key, key); });
}

/// Passes batches of blocks on, large enough that the lock does not count.
class Queue {
 public:
  void put(std::vector<void*> batch) {
    const std::lock_guard lock(mutex_);
    batches_.push_back(std::move(batch));
    ready_.notify_one();
  }
  void close() {
    const std::lock_guard lock(mutex_);
    closed_ = true;
    ready_.notify_all();
  }
  bool take(std::vector<void*>& batch) {
    std::unique_lock lock(mutex_);
    ready_.wait(lock, [&] { return closed_ || !batches_.empty(); });
    if (batches_.empty()) {
      return false;
    }
    batch = std::move(batches_.front());
    batches_.pop_front();
    return true;
  }

 private:
  std::mutex mutex_;
  std::condition_variable ready_;
  std::deque<std::vector<void*>> batches_;
  bool closed_ = false;
};

template <class Take, class Give>
void one_to_seven(std::size_t n, Take&& take, Give&& give) {
  constexpr std::size_t batch_size = 1000;
  phase("allocate_and_free", n, [&] {
    Queue queue;
    std::vector<std::thread> freers;
    for (unsigned t = 1; t < threads; ++t) {
      freers.emplace_back([&] {
        for (std::vector<void*> batch; queue.take(batch);) {
          for (void* const block : batch) {
            give(block);
          }
        }
      });
    }
    for (std::size_t done = 0; done < n; done += batch_size) {
      std::vector<void*> batch(batch_size);
      for (void*& block : batch) {
        block = take();
        *static_cast<std::uint64_t*>(block) = done;
      }
      queue.put(std::move(batch));
    }
    queue.close();
    for (std::thread& thread : freers) {
      thread.join();
    }
  });
}

using Blocks = StaticBlockAllocator<48, 8>;
void run_one_to_seven(std::size_t n) {
  one_to_seven(
      n, [] { return Blocks::allocate(); }, [](void* block) { Blocks::free(block); });
}
void run_one_to_seven_malloc(std::size_t n) {
  one_to_seven(
      n, [] { return std::malloc(48); }, [](void* block) { std::free(block); });
}

/// Two threads, in turns: each allocates a batch, and frees the other's. Only this counts, not the waiting.
template <class Take, class Give>
void exchange(std::size_t n, Take&& take, Give&& give) {
  constexpr std::size_t batch_size = 256;
  const std::size_t batches = std::max<std::size_t>(1, n / batch_size);
  std::vector<void*> batch[2] = {std::vector<void*>(batch_size), std::vector<void*>(batch_size)};
  double spent[2] = {};
  std::barrier both(2);
  const auto work = [&](unsigned self) {
    const auto measure = [&](auto&& one, std::vector<void*>& blocks) {
      const double begin = thread_cpu_ns();
      for (void*& block : blocks) {
        one(block);
      }
      spent[self] += thread_cpu_ns() - begin;
    };
    for (std::size_t done = 0; done < batches; ++done) {
      measure([&](void*& block) { *static_cast<std::uint64_t*>(block = take()) = done; }, batch[self]);
      both.arrive_and_wait();
      measure([&](void*& block) { give(block); }, batch[1 - self]);
      both.arrive_and_wait();
    }
  };
  std::thread other(work, 1);
  work(0);
  other.join();
  print("allocate_and_free", (spent[0] + spent[1]) / static_cast<double>(2 * batches * batch_size));
}

void run_exchange(std::size_t n) {
  exchange(
      n, [] { return Blocks::allocate(); }, [](void* block) { Blocks::free(block); });
}
void run_exchange_heap(std::size_t n) {
  exchange(
      n, [] { return by_malloc(48); }, [](void* block) { by_free(block); });
}
void run_exchange_malloc(std::size_t n) {
  exchange(
      n, [] { return std::malloc(48); }, [](void* block) { std::free(block); });
}

void run_moved(std::size_t n) {
  using Map = HashMap<int, int>;
  const auto fill = [n](Map& map) {
    for (std::size_t i = 0; i < n; ++i) {
      map.insert(static_cast<int>(i), 1);
    }
  };
  Map map;
  fill(map);
  map.clear();
  phase("fill_where_made", n, [&] { fill(map); });
  map.clear();
  std::thread([&, moved = std::move(map)]() mutable {
    fill(moved);  // the thread's own first pages
    moved.clear();
    phase("fill_where_moved", n, [&] { fill(moved); });
  }).join();
}

}  // namespace

std::vector<Case> thread_cases() {
  return {
      {"threads-fill", "HashMap", run_hash_map},
      {"threads-fill", "HashMap-malloc", run_hash_map_malloc},
      {"threads-fill", "std", run_unordered},
      {"threads-hand-over", "StaticBlockAllocator", run_one_to_seven},
      {"threads-hand-over", "malloc", run_one_to_seven_malloc},
      {"threads-exchange", "StaticBlockAllocator", run_exchange},
      {"threads-exchange", "heap", run_exchange_heap},
      {"threads-exchange", "malloc", run_exchange_malloc},
      {"threads-moved", "HashMap", run_moved},
  };
}

}  // namespace blockyard::bench
