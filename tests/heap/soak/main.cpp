// Why: what leaks a block an hour, or breaks once in a million meetings of two threads, shows only after a long time.
// Random work of every kind on several threads, in rounds; after each the world stands still, the invariant walker
// looks at the whole heap, and resident memory is noted. BLOCKYARD_SOAK_SECONDS says how long (tests/heap/run-soak:
// half an hour). Time in which the process was stopped does not count. BLOCKYARD_SOAK_LEAK: bytes that are leaked on
// purpose each round, to see that it is found (heap.soak_finds_a_leak).
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <barrier>
#include <chrono>
#include <cstring>
#include <random>
#include <thread>
#include <vector>

#include "behaviour.hpp"

#pragma weak by_arena_create
#pragma weak by_arena_destroy
#pragma weak by_arena_alloc
#pragma weak by_heap_frame_end

namespace {

constexpr unsigned workers = 4;
constexpr int operations_a_round = 30'000;
constexpr std::size_t kept_a_worker = 2'000;

// A round takes a fraction of a second: in one that took longer the process was stopped or the machine asleep.
constexpr double longest_round_s = 1;

// A slow machine takes longer: with fewer rounds a leak would look like what comes and goes.
constexpr std::size_t least_rounds = 30;

double seconds_since(std::chrono::steady_clock::time_point begun) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count();
}

// What memory was like at the end of a round, in bytes.
struct Sample {
  std::size_t resident;
  by_heap_statistics heap;
};

Sample sample() { return {behaviour::resident_bytes(), behaviour::statistics()}; }

// What must not grow.
std::size_t watched(const Sample& sample) {
#if BLOCKYARD_CHECKED
  // There the records of blocks that were freed stay resident: they grow until every place of the heap had one.
  return sample.heap.committed;
#else
  return sample.resident;
#endif
}

void print(const char* what, const Sample& sample) {
  const auto mib = [](std::uint64_t bytes) { return static_cast<double>(bytes) / 1048576; };
  const by_heap_statistics& heap = sample.heap;
  std::printf(
      "%s, MiB: %.0f resident, %.0f committed; of these %.0f used (%.0f live), %.0f ready, %.0f freed and perhaps "
      "never written\n",
      what, mib(sample.resident), mib(heap.committed), mib(heap.used), mib(heap.live), mib(heap.ready),
      mib(std::max(heap.committed, heap.used + heap.ready) - heap.used - heap.ready));
  std::fflush(stdout);
}

// Of every hundred samples, `rank` are at most so high.
std::size_t percentile(const std::vector<std::size_t>& samples, std::size_t begin, std::size_t end, std::size_t rank) {
  std::vector<std::size_t> sorted(samples.begin() + static_cast<std::ptrdiff_t>(begin),
                                  samples.begin() + static_cast<std::ptrdiff_t>(end));
  std::sort(sorted.begin(), sorted.end());
  return sorted[(sorted.size() - 1) * rank / 100];
}

// Flat: neither the median of the last third nor what only one sample in a hundred exceeds is more than a tenth, and
// `room`, above that of the second third. The first third warms up. Not the highest sample: blocks above 1 MiB that
// were freed wait half a second before they go back, and of those as many as 80 MiB may happen to wait at once where
// mostly it is 20; so the highest of thousands of samples is a matter of luck (136, 141 and 148 MiB in the three thirds
// of one half hour whose medians were 123, 117 and 121), and what leaks raises all of them.
bool grows(const std::vector<std::size_t>& samples, std::size_t rank, std::size_t room) {
  const std::size_t third = samples.size() / 3;
  const std::size_t middle = percentile(samples, third, 2 * third, rank);
  const std::size_t last = percentile(samples, 2 * third, samples.size(), rank);
  std::printf("%zu %% of the samples: at most %.1f MiB in the second third, %.1f in the last\n", rank,
              static_cast<double>(middle) / 1048576, static_cast<double>(last) / 1048576);
  std::fflush(stdout);
  return last > middle + middle / 10 + room;
}

std::size_t random_size(std::mt19937& random) {
  const std::size_t kind = random() % 1'000;
  return kind < 850   ? 16 + random() % 500
         : kind < 985 ? 16 + random() % 9'000
         : kind < 999 ? 16 + random() % 300'000
                      : random() % 3'000'000 + 16;
}

// The first 16 bytes say how long a block is and what its last byte is.
struct Note {
  std::uint64_t size;
  std::uint64_t fill;
};

void* sign(void* block, std::size_t size, unsigned char fill) {
  behaviour::require(block != nullptr, "an allocation failed");
  auto* const bytes = static_cast<unsigned char*>(block);
  const Note note{size, fill};
  bytes[size - 1] = fill;
  std::memcpy(block, &note, sizeof note);
  return block;
}

void verify(const void* block) {
  Note note;
  std::memcpy(&note, block, sizeof note);
  behaviour::require(note.size < (std::size_t{1} << 30), "a live block was overwritten");
  if (note.size > sizeof note) {
    behaviour::require(static_cast<const unsigned char*>(block)[note.size - 1] == note.fill,
                       "a live block was overwritten");
  }
}

void release(void* block) {
  if (block != nullptr) {
    verify(block);
    std::free(block);
  }
}

std::array<std::atomic<void*>, 1'024> table;

void work(std::mt19937& random, std::vector<void*>& kept) {
  for (int i = 0; i < operations_a_round; ++i) {
    const std::size_t size = random_size(random);
    const auto fill = static_cast<unsigned char>(random());
    switch (random() % 16) {
      case 0:
        kept.push_back(sign(std::calloc(1, size), size, fill));
        break;
      case 1: {
        const std::size_t alignment = std::size_t{16} << (random() % 9);
        kept.push_back(sign(std::aligned_alloc(alignment, (size + alignment - 1) / alignment * alignment), size, fill));
        break;
      }
      case 2:
        if (!kept.empty()) {
          void*& block = kept[random() % kept.size()];
          verify(block);
          block = sign(std::realloc(block, size), size, fill);
        }
        break;
      case 3:
      case 4:
      case 5:
        release(table[random() % table.size()].exchange(sign(std::malloc(size), size, fill)));
        break;
      default:
        kept.push_back(sign(std::malloc(size), size, fill));
        break;
    }
    while (kept.size() > kept_a_worker) {
      std::swap(kept[random() % kept.size()], kept.back());
      release(kept.back());
      kept.pop_back();
    }
    if (i % 5'000 == 0) {
      by_heap_frame_end(50'000);
    }
  }
}

// Threads that come, leave blocks behind, and go.
void short_lived_threads(std::mt19937& random) {
  for (int i = 0; i < 8; ++i) {
    std::thread([seed = random()] {
      std::mt19937 own(seed);
      for (int block = 0; block < 50; ++block) {
        const std::size_t size = random_size(own);
        release(table[own() % table.size()].exchange(sign(std::malloc(size), size, 1)));
      }
    }).join();
  }
}

// A level: some ten megabytes that go at once.
void level(std::mt19937& random) {
  by_arena* const heap = by_arena_create();
  behaviour::require(heap != nullptr, "no heap could be made");
  for (std::size_t bytes = 0; bytes < (std::size_t{10} << 20);) {
    const std::size_t size = random_size(random);
    sign(by_arena_alloc(heap, size), size, 2);
    bytes += size;
  }
  by_arena_destroy(heap);
}

void forked_child(std::mt19937& random) {
  const pid_t child = fork();
  if (child == 0) {
    std::vector<void*> kept;
    work(random, kept);
    _exit(by_heap_check() == nullptr ? 0 : 1);
  }
  int status = 0;
  behaviour::require(child > 0 && waitpid(child, &status, 0) == child && status == 0,
                     "the heap is not sound in a forked child");
}

}  // namespace

int main() {
  const char* const wanted = std::getenv("BLOCKYARD_SOAK_SECONDS");
#if BLOCKYARD_CHECKED
  constexpr double usual_seconds = 30;  // a round takes most of a second
#else
  constexpr double usual_seconds = 6;
#endif
  const double seconds = wanted == nullptr ? usual_seconds : std::strtod(wanted, nullptr);
  behaviour::require(seconds > 0, "BLOCKYARD_SOAK_SECONDS is no number of seconds");
  std::atomic<bool> stopped{false};
  std::barrier<> begin_round(workers + 1);
  std::barrier<> end_round(workers + 1);
  std::vector<std::thread> threads;
  for (unsigned index = 0; index < workers; ++index) {
    threads.emplace_back([&, index] {
      std::mt19937 random(index);
      std::vector<void*> kept;
      for (;;) {
        begin_round.arrive_and_wait();
        if (stopped.load()) {
          break;
        }
        work(random, kept);
        end_round.arrive_and_wait();
      }
      std::for_each(kept.begin(), kept.end(), release);
    });
  }

  std::mt19937 random(99);
  const char* const leaked = std::getenv("BLOCKYARD_SOAK_LEAK");
  const std::size_t leak = leaked == nullptr ? 0 : std::strtoul(leaked, nullptr, 10);
  std::vector<void*> leaks;
  // All of it is written to before the first of them: else it would be the test's own memory that grows.
  std::vector<std::size_t> samples(400'000);
  samples.clear();
  Sample highest{};
  double worked = 0;
  double reported = 0;
  while (worked < seconds || samples.size() < least_rounds) {
    const auto round_begun = std::chrono::steady_clock::now();
    begin_round.arrive_and_wait();
    short_lived_threads(random);
    if (samples.size() % 4 == 0) {
      level(random);
    }
    end_round.arrive_and_wait();
    if (samples.size() % 16 == 0) {
      forked_child(random);
    }
    if (leak != 0) {
      leaks.push_back(std::calloc(1, leak));
      behaviour::require(leaks.back() != nullptr, "an allocation failed");
      std::memset(leaks.back(), 1, leak);
    }
    behaviour::require_sound_heap();
    const Sample now = sample();
    samples.push_back(watched(now));
    if (now.resident > highest.resident) {
      highest = now;
    }
    worked += std::min(seconds_since(round_begun), longest_round_s);
    if (worked - reported >= 30) {
      reported = worked;
      std::printf("%5.0f s, %zu rounds, every check passed; ", reported, samples.size());
      print("now", now);
    }
  }
  stopped.store(true);
  begin_round.arrive_and_wait();
  for (std::thread& thread : threads) {
    thread.join();
  }
  for (auto& place : table) {
    release(place.exchange(nullptr));
  }
  behaviour::require_sound_heap();

  std::printf("%zu rounds in %.0f s; every check passed\n", samples.size(), worked);
  print("the highest", highest);
  const bool medians_grow = grows(samples, 50, std::size_t{4} << 20);
  const bool peaks_grow = grows(samples, 99, std::size_t{8} << 20);
  behaviour::require(!medians_grow && !peaks_grow, "resident memory grows");
}
