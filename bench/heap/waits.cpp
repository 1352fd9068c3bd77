// What the allocator's own housekeeping costs others: how long another thread's mmap and munmap wait, and the
// background thread's processor time.
#include <dirent.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstring>
#include <deque>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "bench.hpp"

namespace bench {
namespace {

std::atomic<bool> stopped{false};

// Keeps an allocator's housekeeping at work: every millisecond 1 MiB is wanted and, a quarter of a second later, no
// longer. Blocks grow and shrink in number over two seconds, so that memory is both populated and given back.
void work(double seconds) {
  std::deque<void*> blocks;
  const std::uint64_t begun = now_ns();
  for (std::uint64_t round = 0; static_cast<double>(now_ns() - begun) / 1e9 < seconds; ++round) {
    const std::size_t wanted = 8 * (round % 2'000 < 1'000 ? round % 1'000 : 1'000 - round % 1'000);
    for (int i = 0; i < 16 && blocks.size() < wanted; ++i) {
      constexpr std::uint32_t bytes = 128u << 10;
      auto* const block = static_cast<char*>(allocate(bytes));
      for (std::uint32_t page = 4096; page < bytes; page += 4096) {
        block[page] = 1;
      }
      blocks.push_back(block);
    }
    for (int i = 0; i < 16 && blocks.size() > wanted; ++i) {
      release(blocks.front());
      blocks.pop_front();
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  for (void* block : blocks) {
    release(block);
  }
}

std::uint64_t percentile(const std::vector<std::uint64_t>& sorted, double share) {
  return sorted[std::min(sorted.size() - 1, static_cast<std::size_t>(static_cast<double>(sorted.size()) * share))];
}

// mmap and munmap of 64 KiB, each pair timed, every 20 us on a thread that allocates nothing.
void mmap_waits(double seconds, bool busy) {
  std::vector<std::uint64_t> waits;
  waits.reserve(static_cast<std::size_t>(seconds * 100'000));
  std::thread other([&] {
    while (!stopped.load(std::memory_order_relaxed) && waits.size() < waits.capacity()) {
      const std::uint64_t begun = now_ns();
      void* const pages = mmap(nullptr, 64u << 10, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
      munmap(pages, 64u << 10);
      const std::uint64_t ended = now_ns();
      waits.push_back(ended - begun);
      while (now_ns() < ended + 20'000) {
      }
    }
  });
  if (busy) {
    work(seconds);
  } else {
    std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
  }
  stopped.store(true);
  other.join();
  std::sort(waits.begin(), waits.end());
  std::printf("pairs %zu\np50_ns %llu\np999_ns %llu\nmax_ns %llu\n", waits.size(),
              static_cast<unsigned long long>(percentile(waits, 0.5)),
              static_cast<unsigned long long>(percentile(waits, 0.999)), static_cast<unsigned long long>(waits.back()));
}

// Processor time of all threads but this one, in ns: the kernel's count.
std::uint64_t background_ns() {
  std::uint64_t all = 0;
  DIR* const tasks = opendir("/proc/self/task");
  const std::string own = std::to_string(gettid());
  for (const dirent* task = readdir(tasks); task != nullptr; task = readdir(tasks)) {
    if (task->d_name[0] == '.' || own == task->d_name) {
      continue;
    }
    std::FILE* const file = std::fopen((std::string("/proc/self/task/") + task->d_name + "/schedstat").c_str(), "r");
    unsigned long long ran = 0;
    if (file != nullptr) {
      all += std::fscanf(file, "%llu", &ran) == 1 ? ran : 0;
      std::fclose(file);
    }
  }
  closedir(tasks);
  return all;
}

void background(double seconds) {
  const auto share = [](std::uint64_t from, std::uint64_t begun) {
    return 100.0 * static_cast<double>(background_ns() - from) / static_cast<double>(now_ns() - begun);
  };
  std::atomic<bool> measured{false};
  std::thread second([&] { measured.wait(false); });  // the janitor comes with it
  std::uint64_t from = background_ns();
  std::uint64_t begun = now_ns();
  work(seconds);
  std::printf("busy_percent %.3f\n", share(from, begun));
  // What was freed goes back in the meantime.
  std::this_thread::sleep_for(std::chrono::seconds(2));
  from = background_ns();
  begun = now_ns();
  std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
  std::printf("idle_percent %.4f\n", share(from, begun));
  measured.store(true);
  measured.notify_one();
  second.join();
}

}  // namespace

bool run_waits(const char* workload, double seconds) {
  const std::string_view name = workload;
  if (name == "mmap-busy" || name == "mmap-quiet") {
    mmap_waits(seconds, name == "mmap-busy");
  } else if (name == "background") {
    background(seconds);
  } else {
    return false;
  }
  return true;
}

}  // namespace bench
