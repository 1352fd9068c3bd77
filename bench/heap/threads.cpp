// Several threads. Each counts its own operations until the time is up; printed are their sum a second, in millions,
// and the share of the thread that got least beside the one that got most.
#include <sched.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string_view>
#include <thread>
#include <vector>

#include "bench.hpp"

namespace bench {
namespace {

std::atomic<bool> stopped{false};

bool running() { return !stopped.load(std::memory_order_relaxed); }

void report(const std::vector<std::uint64_t>& counts, double seconds) {
  std::uint64_t all = 0;
  for (const std::uint64_t count : counts) {
    all += count;
  }
  const auto [least, most] = std::minmax_element(counts.begin(), counts.end());
  std::printf("millions_a_second %.4f\nfairness %.3f\n", static_cast<double>(all) / seconds / 1e6,
              static_cast<double>(*least) / static_cast<double>(std::max<std::uint64_t>(*most, 1)));
}

// Keeps the calling thread on one core, the threads in turn on all that the process may use. Left to the kernel, two
// threads that yield to each other may end up on one core, where every allocator is several times as fast, or not.
void stay_on_a_core(unsigned index) {
  cpu_set_t allowed;
  if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) {
    return;
  }
  unsigned turn = index % static_cast<unsigned>(CPU_COUNT(&allowed));
  for (unsigned core = 0; core < CPU_SETSIZE; ++core) {
    if (CPU_ISSET(core, &allowed) && turn-- == 0) {
      cpu_set_t one;
      CPU_ZERO(&one);
      CPU_SET(core, &one);
      sched_setaffinity(0, sizeof one, &one);
      return;
    }
  }
}

// Runs work(index) -> operations on each thread for so long.
template <class Work>
void measure(unsigned threads, double seconds, Work&& work, bool apart = false) {
  std::vector<std::uint64_t> counts(threads);
  std::vector<std::thread> started;
  const std::uint64_t begun = now_ns();
  for (unsigned index = 0; index < threads; ++index) {
    started.emplace_back([&, index] {
      if (apart) {
        stay_on_a_core(index);
      }
      thread_start();
      counts[index] = work(index);
      thread_stop();
    });
  }
  std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
  stopped.store(true, std::memory_order_relaxed);
  for (std::thread& thread : started) {
    thread.join();
  }
  report(counts, static_cast<double>(now_ns() - begun) / 1e9);
}

// A bounded queue of batches between one producer and one consumer.
class Queue {
 public:
  static constexpr std::size_t batch = 128;
  using Batch = std::array<void*, batch>;

  bool push(const Batch& blocks) {
    const std::size_t tail = tail_.load(std::memory_order_relaxed);
    if (tail - head_.load(std::memory_order_acquire) == ring_.size()) {
      return false;
    }
    ring_[tail % ring_.size()] = blocks;
    tail_.store(tail + 1, std::memory_order_release);
    return true;
  }
  bool pop(Batch& blocks) {
    const std::size_t head = head_.load(std::memory_order_relaxed);
    if (head == tail_.load(std::memory_order_acquire)) {
      return false;
    }
    blocks = ring_[head % ring_.size()];
    head_.store(head + 1, std::memory_order_release);
    return true;
  }

 private:
  alignas(64) std::atomic<std::size_t> head_{0};
  alignas(64) std::atomic<std::size_t> tail_{0};
  std::array<Batch, 16> ring_;
};

// Half of the threads allocate, the other half free what those allocated. An operation is a block made or freed.
// `apart`: the two of each pair have a core each.
void producer_consumer(unsigned threads, double seconds, bool apart) {
  const auto queues = std::make_unique<Queue[]>(threads / 2);
  const auto work = [&](unsigned index) {
    Queue& queue = queues[index / 2];
    Random random(index);
    std::uint64_t count = 0;
    Queue::Batch blocks;
    while (running()) {
      if (index % 2 == 0) {
        for (void*& block : blocks) {
          block = allocate(small_size(random));
        }
        while (!queue.push(blocks) && running()) {
          std::this_thread::yield();
        }
      } else {
        while (!queue.pop(blocks)) {
          if (!running()) {
            return count;
          }
          std::this_thread::yield();
        }
        for (void* block : blocks) {
          release(block);
        }
      }
      count += Queue::batch;
    }
    return count;
  };
  measure(threads, seconds, work, apart);
}

// After Larson and Krishnan, "Memory Allocation for Long-Running Server Applications", 1998: each thread replaces
// random blocks of an array; now and then the arrays change hands, so that blocks outlive the turn of the thread that
// made them.
void larson(unsigned threads, double seconds) {
  constexpr std::size_t blocks = 1'000;
  constexpr int turn = 10'000;
  std::vector<std::vector<void*>> arrays(threads);
  std::vector<std::atomic<std::vector<void*>*>> places(threads);
  for (unsigned index = 0; index < threads; ++index) {
    Random random(index + 100);
    for (std::size_t i = 0; i < blocks; ++i) {
      arrays[index].push_back(allocate(small_size(random)));
    }
    places[index].store(&arrays[index]);
  }
  measure(threads, seconds, [&](unsigned index) {
    Random random(index);
    std::uint64_t count = 0;
    while (running()) {
      // There are as many arrays as threads, so from any place on there is one that nobody has.
      std::vector<void*>* array = nullptr;
      for (unsigned place = random.below(threads); array == nullptr; place = (place + 1) % threads) {
        array = places[place].exchange(nullptr, std::memory_order_acquire);
      }
      for (int i = 0; i < turn; ++i) {
        void*& block = (*array)[random.below(blocks)];
        release(block);
        block = allocate(small_size(random));
      }
      for (unsigned place = random.below(threads);; place = (place + 1) % threads) {
        std::vector<void*>* empty = nullptr;
        if (places[place].compare_exchange_strong(empty, array, std::memory_order_release)) {
          break;
        }
      }
      count += turn;
    }
    return count;
  });
}

// Every block goes through a table that all threads share: most are freed by a thread that did not make them.
void exchange(unsigned threads, double seconds) {
  std::vector<std::atomic<void*>> table(4'096);
  measure(threads, seconds, [&](unsigned index) {
    Random random(index);
    std::uint64_t count = 0;
    while (running()) {
      for (int i = 0; i < 1'000; ++i) {
        const std::uint32_t size = random.below(500) == 0 ? 10'000 + random.below(60'000) : small_size(random);
        void* const other = table[random.below(4'096)].exchange(allocate(size), std::memory_order_acq_rel);
        if (other != nullptr) {
          release(other);
        }
      }
      count += 1'000;
    }
    return count;
  });
}

// Threads that live for 200 blocks: most die with them, some are left to whoever comes next. An operation is a thread.
void churn(unsigned threads, double seconds) {
  std::vector<std::atomic<void*>> left(256);
  measure(threads, seconds, [&](unsigned index) {
    Random seeds(index);
    std::uint64_t count = 0;
    for (; running(); ++count) {
      std::thread([&, seed = seeds.below(1u << 30)] {
        thread_start();
        Random random(seed);
        std::array<void*, 200> blocks;
        for (void*& block : blocks) {
          block = allocate(small_size(random));
        }
        for (std::size_t i = 0; i < blocks.size(); ++i) {
          void* const other = i % 10 == 0 ? left[random.below(256)].exchange(blocks[i]) : blocks[i];
          if (other != nullptr) {
            release(other);
          }
        }
        thread_stop();
      }).join();
    }
    return count;
  });
}

}  // namespace

bool run_threads(const char* workload, unsigned threads, double seconds) {
  const std::string_view name = workload;
  if (name == "producer-consumer") {
    producer_consumer(threads, seconds, false);
  } else if (name == "producer-consumer-apart") {
    producer_consumer(threads, seconds, true);
  } else if (name == "larson") {
    larson(threads, seconds);
  } else if (name == "exchange") {
    exchange(threads, seconds);
  } else if (name == "churn") {
    churn(threads, seconds);
  } else {
    return false;
  }
  return true;
}

}  // namespace bench
