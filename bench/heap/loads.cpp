// Loads of a fixed amount of work: main.cpp measures what each takes, and how much of the process is resident at most.
#include <algorithm>
#include <array>
#include <barrier>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <string_view>
#include <thread>
#include <vector>

#include "bench.hpp"

namespace bench {
namespace {

// One thread allocates a list of blocks while another frees the list before it. Two lists live at most.
void handoff(std::uint32_t (*size)(Random&)) {
  constexpr std::size_t blocks = 100'000;
  constexpr unsigned rounds = 100;
  std::array<std::vector<void*>, 2> lists{std::vector<void*>(blocks), std::vector<void*>(blocks)};
  std::barrier both(2);
  std::thread consumer([&] {
    thread_start();
    for (unsigned round = 0; round <= rounds; ++round) {
      if (round > 0) {
        for (void* block : lists[(round + 1) % 2]) {
          release(block);
        }
      }
      both.arrive_and_wait();
    }
    thread_stop();
  });
  Random random(1);
  for (unsigned round = 0; round <= rounds; ++round) {
    if (round < rounds) {
      for (void*& block : lists[round % 2]) {
        block = allocate(size(random));
      }
    }
    both.arrive_and_wait();
  }
  consumer.join();
}

// Blocks of 5 to 25 MiB, each written in full, take the place of a random one of 33: about 500 MB live.
void large_random() {
  constexpr std::uint32_t mib = 1u << 20;
  std::array<void*, 33> live{};
  Random random(1);
  for (int round = 0; round < 600; ++round) {
    void*& place = live[random.below(live.size())];
    if (place != nullptr) {
      release(place);
    }
    const std::uint32_t size = 5 * mib + random.below(20 * mib);
    place = allocate(size);
    std::memset(static_cast<char*>(place) + sizeof size, 1, size - sizeof size);
  }
}

std::uint64_t thread_time_ns() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000u + static_cast<std::uint64_t>(now.tv_nsec);
}

// Blocks of 1 to 8 MiB, a byte written to each of their pages, all of them kept. Processor time: whoever ran in between
// does not count.
void large_touch() {
  std::uint64_t worst = 0;
  Random random(1);
  for (int each = 0; each < 100; ++each) {
    const std::uint32_t size = (1u << 20) + 1 + random.below(7u << 20);
    const std::uint64_t begun = thread_time_ns();
    auto* const block = static_cast<volatile char*>(allocate(size));
    for (std::uint32_t page = 4096; page < size; page += 4096) {
      block[page] = 1;
    }
    worst = std::max(worst, thread_time_ns() - begun);
  }
  std::printf("worst_ms %.3f\n", static_cast<double>(worst) / 1e6);
}

// After the GNU C library's bench-malloc-simple: so many blocks of one size allocated, the first half of them freed in
// the order of their allocation, the other half in the reverse order. The geometric mean over sizes and counts.
void fifo_lifo() {
  constexpr std::array<std::size_t, 4> sizes{16, 64, 256, 1024};
  constexpr std::array<std::size_t, 4> counts{25, 100, 400, 1600};
  constexpr std::size_t all_blocks = 400'000;
  std::array<void*, counts.back()> blocks;
  double logarithms = 0;
  for (const std::size_t size : sizes) {
    for (const std::size_t count : counts) {
      double best = 1e9;
      for (int round = 0; round < 5; ++round) {
        const std::uint64_t begun = now_ns();
        for (std::size_t done = 0; done < all_blocks; done += count) {
          for (std::size_t i = 0; i < count; ++i) {
            blocks[i] = allocate(static_cast<std::uint32_t>(size));
          }
          for (std::size_t i = 0; i < count / 2; ++i) {
            release(blocks[i]);
          }
          for (std::size_t i = count; i-- > count / 2;) {
            release(blocks[i]);
          }
        }
        best = std::min(best, static_cast<double>(now_ns() - begun) / all_blocks);
      }
      logarithms += std::log(best);
    }
  }
  std::printf("ns_a_block %.4f\n", std::exp(logarithms / (sizes.size() * counts.size())));
}

}  // namespace

bool run_loads(const char* workload) {
  const std::string_view name = workload;
  if (name == "handoff-64") {
    handoff([](Random&) { return std::uint32_t{64}; });
  } else if (name == "handoff-mixed") {
    handoff(small_size);
  } else if (name == "large-random") {
    large_random();
  } else if (name == "large-touch") {
    large_touch();
  } else if (name == "fifo-lifo") {
    fifo_lifo();
  } else {
    return false;
  }
  return true;
}

}  // namespace bench
