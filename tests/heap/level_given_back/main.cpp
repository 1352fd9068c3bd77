// Why: between two levels a game frees most of what it has. The janitor must give that back by itself, down to what
// lives and a quarter more, also where the level lay scattered: blocks of all sizes, allocated on threads that have
// ended, freed in no order, among others that stay, and also while the program goes on to play: 3 MB come and go in
// each of its frames. docs/design/heap.md promises it within two seconds; how long it took is printed, and only a
// janitor that never does it fails: in half a minute in which it had its rounds, however long the machine took for
// them. Where 64 MiB stay, what lives counts as the heap rounds it.
#include <malloc.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <random>
#include <thread>
#include <vector>

#include "behaviour.hpp"

namespace {

using behaviour::resident_bytes;
using Clock = std::chrono::steady_clock;

constexpr std::size_t mib = std::size_t{1} << 20;
constexpr std::size_t level_bytes = 256 * mib;
constexpr unsigned loaders = 3;
constexpr auto enough_for_the_janitor = std::chrono::seconds(30);

// What is resident beside the heap: read while the janitor sleeps, since what it is just populating or giving back is
// counted as the heap's before it is resident, or after.
std::size_t resident_beside_the_heap() {
  const int janitor = behaviour::thread_of_the_janitor();
  for (;;) {
    const behaviour::Rest before = janitor != 0 ? behaviour::rest_of(janitor) : behaviour::Rest{.asleep = true};
    const std::size_t beside = resident_bytes() - behaviour::statistics().committed;
    if (before.asleep && (janitor == 0 || behaviour::rest_of(janitor).naps == before.naps)) {
      return beside;
    }
    usleep(1'000);
  }
}

// Nine of ten as small as most of a game's, some of pages, a few large; together mostly pages.
std::size_t random_size(std::mt19937& random) {
  const std::size_t kind = random() % 1'000;
  return kind < 900   ? 16 + random() % 500
         : kind < 990 ? 16 + random() % 16'000
         : kind < 999 ? 16 + random() % 300'000
                      : 16 + random() % (4 * mib);
}

std::vector<void*> allocated(std::size_t bytes, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<void*> blocks;
  for (std::size_t so_far = 0; so_far < bytes;) {
    const std::size_t size = random_size(random);
    blocks.push_back(std::memset(std::malloc(size), 1, size));
    so_far += size;
  }
  return blocks;
}

// What a frame in play allocates and frees, 3 MB of blocks of all sizes up to pages.
class Frames {
 public:
  void play() {
    constexpr std::size_t frame_bytes = 3'000'000;
    std::size_t count = 0;
    for (std::size_t so_far = 0; so_far < frame_bytes && count < blocks_.size();) {
      const std::size_t size = std::min<std::size_t>(random_size(random_), 300'000);
      blocks_[count++] = std::memset(std::malloc(size), 1, size);
      so_far += size;
    }
    std::for_each(blocks_.begin(), blocks_.begin() + static_cast<std::ptrdiff_t>(count), std::free);
  }

 private:
  std::mt19937 random_{7};
  std::array<void*, 50'000> blocks_{};
};

// Time in which the janitor had rounds: of what went by until the next was seen at most a tenth of a second counts, so
// that neither a machine that was stopped nor one that gives the process next to nothing is taken for a janitor that
// does not do its work.
class TimeOfTheJanitor {
 public:
  Clock::duration so_far() {
    if (const long naps = behaviour::rest_of(thread_).naps; naps != naps_) {
      naps_ = naps;
      const auto now = Clock::now();
      so_far_ += std::min<Clock::duration>(now - seen_, std::chrono::milliseconds(100));
      seen_ = now;
    }
    return so_far_;
  }

 private:
  int thread_ = behaviour::thread_of_the_janitor();
  long naps_ = behaviour::rest_of(thread_).naps;
  Clock::time_point seen_ = Clock::now();
  Clock::duration so_far_{0};
};

void free_all(std::vector<void*>& blocks) {
  std::for_each(blocks.begin(), blocks.end(), std::free);
  std::vector<void*>().swap(blocks);
}

std::size_t rounded(const std::vector<void*>& blocks) {
  std::size_t bytes = 0;
  for (void* block : blocks) {
    bytes += malloc_usable_size(block);
  }
  return bytes;
}

// A level is loaded among what lasts and freed; then the program plays on, or calls nothing of the heap's.
void load_and_free_a_level(std::size_t lasting_bytes, Frames* frames, bool as_rounded) {
  const std::size_t lab = resident_beside_the_heap();
  std::vector<void*> lasting = allocated(lasting_bytes, 1);
  std::vector<std::vector<void*>> parts(loaders);
  std::vector<std::thread> threads;
  for (unsigned index = 0; index < loaders; ++index) {
    threads.emplace_back([&, index] { parts[index] = allocated(level_bytes / loaders, 2 + index); });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  std::vector<void*> level;
  for (std::vector<void*>& part : parts) {
    level.insert(level.end(), part.begin(), part.end());
    std::vector<void*>().swap(part);
  }
  std::shuffle(level.begin(), level.end(), std::mt19937(99));
  const std::size_t full = resident_bytes() - lab;
  behaviour::require(full > lasting_bytes + level_bytes, "the level is not in memory");
  TimeOfTheJanitor waited;
  free_all(level);

  const auto freed = Clock::now();
  const std::size_t live = as_rounded ? rounded(lasting) : lasting_bytes;
  const std::size_t wanted = (live + lasting.capacity() * sizeof(void*)) / 4 * 5;
  std::size_t resident = 0;
  do {
    if (frames != nullptr) {
      frames->play();
    }
    usleep(16'000);
    resident = resident_bytes() - lab;
  } while (resident > wanted && waited.so_far() < enough_for_the_janitor);
  std::printf("%.1f MiB resident with the level; %.1f with %.1f live %.2f s after it was freed%s\n",
              static_cast<double>(full) / mib, static_cast<double>(resident) / mib, static_cast<double>(live) / mib,
              std::chrono::duration<double>(Clock::now() - freed).count(), frames != nullptr ? ", in play" : "");
  const by_heap_statistics now = behaviour::statistics();
  std::printf("MiB: %.1f committed, %.1f used, %.1f live, %.1f ready\n", static_cast<double>(now.committed) / mib,
              static_cast<double>(now.used) / mib, static_cast<double>(now.live) / mib,
              static_cast<double>(now.ready) / mib);
  std::fflush(stdout);
  behaviour::require(resident <= wanted, "memory of a freed level is not given back without a call from the program");
  free_all(lasting);
}

}  // namespace

int main() {
  static Frames frames;
  load_and_free_a_level(128 * mib, nullptr, false);
  load_and_free_a_level(128 * mib, &frames, false);
  load_and_free_a_level(64 * mib, nullptr, true);
  load_and_free_a_level(64 * mib, &frames, true);
  behaviour::require_sound_heap();
}
