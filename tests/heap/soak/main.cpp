// Why: what leaks a block an hour, or breaks once in a million meetings of two threads, shows only after a long time.
// Random work of every kind on several threads, in rounds; after each the world stands still, the invariant walker
// looks at the whole heap, and resident memory is noted. BLOCKYARD_SOAK_SECONDS says how long (tests/heap/run-soak:
// half an hour). Time in which the process was stopped does not count.
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

#pragma weak by_heap_create
#pragma weak by_heap_destroy
#pragma weak by_heap_malloc
#pragma weak by_heap_frame_end

namespace {

constexpr unsigned workers = 4;
constexpr int operations_a_round = 30'000;
constexpr std::size_t kept_a_worker = 2'000;

// A round takes a fraction of a second: in one that took longer the process was stopped or the machine asleep.
constexpr double longest_round_s = 1;

double seconds_since(std::chrono::steady_clock::time_point begun) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count();
}

std::size_t resident_bytes() {
  std::FILE* const file = std::fopen("/proc/self/statm", "r");
  unsigned long pages = 0;
  behaviour::require(file != nullptr && std::fscanf(file, "%*u %lu", &pages) == 1, "resident memory can't be read");
  std::fclose(file);
  return pages * 4096;
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
  by_heap* const heap = by_heap_create();
  behaviour::require(heap != nullptr, "no heap could be made");
  for (std::size_t bytes = 0; bytes < (std::size_t{10} << 20);) {
    const std::size_t size = random_size(random);
    sign(by_heap_malloc(heap, size), size, 2);
    bytes += size;
  }
  by_heap_destroy(heap);
}

void forked_child(std::mt19937& random) {
  const pid_t child = fork();
  if (child == 0) {
    std::vector<void*> kept;
    work(random, kept);
    _exit(by_check() == nullptr ? 0 : 1);
  }
  int status = 0;
  behaviour::require(child > 0 && waitpid(child, &status, 0) == child && status == 0,
                     "the heap is not sound in a forked child");
}

}  // namespace

int main() {
  const char* const wanted = std::getenv("BLOCKYARD_SOAK_SECONDS");
  const double seconds = wanted == nullptr ? 6 : std::strtod(wanted, nullptr);
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
  std::vector<std::size_t> resident;
  resident.reserve(1'000'000);
  double worked = 0;
  double reported = 0;
  while (worked < seconds) {
    const auto round_begun = std::chrono::steady_clock::now();
    begin_round.arrive_and_wait();
    short_lived_threads(random);
    if (resident.size() % 4 == 0) {
      level(random);
    }
    end_round.arrive_and_wait();
    if (resident.size() % 16 == 0) {
      forked_child(random);
    }
    behaviour::require_sound_heap();
    resident.push_back(resident_bytes());
    worked += std::min(seconds_since(round_begun), longest_round_s);
    if (worked - reported >= 30) {
      reported = worked;
      const by_heap_statistics now = behaviour::statistics();
      const auto mib = [](std::uint64_t bytes) { return static_cast<unsigned>(bytes >> 20); };
      std::printf(
          "%5.0f s, %zu rounds, MiB: %u resident, %u committed, %u used, %u live, %u ready; every check passed\n",
          reported, resident.size(), mib(resident.back()), mib(now.committed), mib(now.used), mib(now.live),
          mib(now.ready));
      std::fflush(stdout);
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

  // Flat: the highest of the last third no more than a tenth and 8 MiB above the highest of the second. The first
  // third warms up.
  behaviour::require(resident.size() >= 9, "too few rounds to tell whether memory grows");
  const auto third = static_cast<std::ptrdiff_t>(resident.size() / 3);
  const std::size_t middle = *std::max_element(resident.begin() + third, resident.begin() + 2 * third);
  const std::size_t last = *std::max_element(resident.begin() + 2 * third, resident.end());
  std::printf(
      "%zu rounds in %.0f s; resident at most %.1f MiB in the second third, %.1f in the last; every check passed\n",
      resident.size(), worked, static_cast<double>(middle) / 1048576, static_cast<double>(last) / 1048576);
  std::fflush(stdout);
  behaviour::require(last <= middle + middle / 10 + (std::size_t{8} << 20), "resident memory grows");
}
