/// adapter-exercise (use|faults) ADAPTER OPTIONS POPULATE: drives one allocator through its adapter, as a replay does.
///
/// `use` checks what malloc's family promises, on four threads: contents, alignment, zeroed memory, blocks that do not
/// overlap, reallocation, sizes of 0, frees on another thread. `faults` fills and churns a heap of 48 MiB on two
/// threads and prints the minor page faults of doing so. Exit 1 with a sentence when a promise is broken.
#include <dlfcn.h>
#include <sys/resource.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <random>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "blockyard/adapter.h"

namespace {

constexpr uint64_t peak_bytes = uint64_t{48} << 20;

[[noreturn]] void broken(const std::string& sentence) {
  std::fprintf(stderr, "blockyard: %s\n", sentence.c_str());
  std::_Exit(1);
}

/// The adapter with the lock and the sized free that its flags ask for: what the replayer does.
class Allocator {
 public:
  explicit Allocator(const by_adapter& adapter) : adapter_(adapter) {}

  void* allocate(size_t size) {
    return locked([&] { return adapter_.allocate(size); });
  }
  void* allocate_zeroed(size_t size) {
    return locked([&] { return adapter_.allocate_zeroed(size); });
  }
  void* allocate_aligned(size_t alignment, size_t size) {
    return locked([&] { return adapter_.allocate_aligned(alignment, size); });
  }
  void* reallocate(void* block, size_t old_size, size_t old_alignment, size_t size) {
    return locked([&] { return adapter_.reallocate(block, old_size, old_alignment, size); });
  }
  void free(void* block, size_t size, size_t alignment) {
    locked([&] {
      if ((adapter_.flags & BY_ADAPTER_SIZED_FREE) != 0) {
        adapter_.free_sized(block, size, alignment);
      } else {
        adapter_.free(block);
      }
      return nullptr;
    });
  }
  void thread_start() const {
    if (adapter_.thread_start != nullptr) adapter_.thread_start();
  }
  void thread_stop() const {
    if (adapter_.thread_stop != nullptr) adapter_.thread_stop();
  }

 private:
  template <typename Call>
  void* locked(Call call) {
    if ((adapter_.flags & BY_ADAPTER_NEEDS_LOCK) == 0) return call();
    const std::lock_guard guard(mutex_);
    return call();
  }

  const by_adapter& adapter_;
  std::mutex mutex_;
};

struct Block {
  unsigned char* bytes = nullptr;
  size_t size = 0;
  size_t alignment = 16;
  unsigned char seed = 0;
};

unsigned char pattern(const Block& block, size_t at) {
  return static_cast<unsigned char>(block.seed + at * 31 + (at >> 8));
}

// Every byte of small blocks, both ends of large ones.
template <typename Visit>
void each_checked_byte(size_t size, Visit visit) {
  constexpr size_t edge = 512;
  for (size_t at = 0; at < size && at < edge; ++at) visit(at);
  for (size_t at = size > edge ? (size > 2 * edge ? size - edge : edge) : size; at < size; ++at) visit(at);
}

void fill(const Block& block) {
  each_checked_byte(block.size, [&](size_t at) { block.bytes[at] = pattern(block, at); });
}

void check(const Block& block, size_t size, const char* when) {
  each_checked_byte(size, [&](size_t at) {
    if (block.bytes[at] != pattern(block, at)) {
      broken("byte " + std::to_string(at) + " of a block of " + std::to_string(size) + " bytes changed " + when);
    }
  });
}

void check_alignment(const Block& block) {
  if (block.bytes == nullptr) broken("no memory for " + std::to_string(block.size) + " bytes");
  // malloc's alignment is that of any type that fits into the block.
  const size_t promised = block.alignment > 16 ? block.alignment : (block.size < 16 ? 8 : 16);
  if (reinterpret_cast<uintptr_t>(block.bytes) % promised != 0) {
    broken("a block of " + std::to_string(block.size) + " bytes is not aligned to " + std::to_string(promised));
  }
}

using Random = std::minstd_rand;

size_t pick_size(Random& random) {
  const auto roll = random() % 1000;
  if (roll < 900) return 1 + random() % 512;
  if (roll < 995) return 1 + random() % 16384;
  return 1 + random() % (size_t{512} << 10);
}

Block make(Allocator& allocator, Random& random) {
  Block block;
  block.size = pick_size(random);
  block.seed = static_cast<unsigned char>(random());
  const auto kind = random() % 10;
  if (kind == 0) {
    block.bytes = static_cast<unsigned char*>(allocator.allocate_zeroed(block.size));
    check_alignment(block);
    each_checked_byte(block.size, [&](size_t at) {
      if (block.bytes[at] != 0) broken("zeroed memory was not zero");
    });
  } else if (kind == 1) {
    block.alignment = size_t{16} << (random() % 9);
    block.bytes = static_cast<unsigned char*>(allocator.allocate_aligned(block.alignment, block.size));
  } else {
    block.bytes = static_cast<unsigned char*>(allocator.allocate(block.size));
  }
  check_alignment(block);
  fill(block);
  return block;
}

void resize(Allocator& allocator, Random& random, Block& block) {
  const size_t size = pick_size(random);
  auto* moved = static_cast<unsigned char*>(allocator.reallocate(block.bytes, block.size, block.alignment, size));
  if (moved == nullptr) broken("no memory to reallocate to " + std::to_string(size) + " bytes");
  block.bytes = moved;
  // All of a block that grew was kept; of one that shrank its beginning.
  check(block, size >= block.size ? block.size : std::min(size, size_t{512}), "while it was reallocated");
  block.size = size;
  block.alignment = 16;
  check_alignment(block);
  fill(block);
}

void drop(Allocator& allocator, Block& block) {
  if (block.bytes == nullptr) return;
  check(block, block.size, "while it was live");
  allocator.free(block.bytes, block.size, block.alignment);
  block.bytes = nullptr;
}

/// Blocks on their way to another thread, which frees them.
class Exchange {
 public:
  void swap(size_t place, Block& block) {
    const std::lock_guard guard(mutex_);
    std::swap(places_[place % places_.size()], block);
  }

 private:
  std::mutex mutex_;
  std::array<Block, 256> places_;
};

void use_sizes_of_zero(Allocator& allocator) {
  void* first = allocator.allocate(0);
  void* second = allocator.allocate(0);
  if (first != nullptr && first == second) broken("two live blocks of size 0 have one address");
  allocator.free(first, 0, 16);
  allocator.free(second, 0, 16);
  allocator.free(allocator.allocate_zeroed(0), 0, 16);
  allocator.free(nullptr, 0, 16);
  void* grown = allocator.reallocate(nullptr, 0, 16, 100);
  if (grown == nullptr) broken("reallocating nothing gives no block");
  allocator.free(grown, 100, 16);
}

void use(Allocator& allocator) {
  constexpr unsigned thread_count = 4;
  constexpr unsigned steps = 40000;
  Exchange exchange;
  const auto work = [&](unsigned number) {
    allocator.thread_start();
    Random random(number + 1);
    use_sizes_of_zero(allocator);
    std::vector<Block> live(512);
    for (unsigned step = 0; step < steps; ++step) {
      Block& block = live[random() % live.size()];
      const auto action = random() % 8;
      if (block.bytes == nullptr) {
        block = make(allocator, random);
      } else if (action == 0) {
        resize(allocator, random, block);
      } else if (action < 3) {
        exchange.swap(random(), block);
      } else {
        drop(allocator, block);
      }
    }
    for (Block& block : live) drop(allocator, block);
    allocator.thread_stop();
  };
  std::vector<std::thread> threads;
  for (unsigned number = 1; number < thread_count; ++number) threads.emplace_back(work, number);
  work(0);
  for (std::thread& thread : threads) thread.join();
}

uint64_t minor_faults() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<uint64_t>(usage.ru_minflt);
}

/// Two threads, neither the first, fill half the peak each and churn it; every page is written to.
uint64_t faults(Allocator& allocator) {
  std::atomic<unsigned> ready = 0;
  std::atomic<bool> go = false;
  std::atomic<unsigned> done = 0;
  std::atomic<bool> leave = false;
  const auto work = [&](unsigned number) {
    allocator.thread_start();
    Random random(number + 1);
    // The driver's own memory is touched before the clock starts.
    std::vector<Block> live(1 << 15);
    ++ready;
    while (!go) std::this_thread::yield();
    // One block that some allocators keep apart from all others: jemalloc has an arena for those above 8 MiB.
    constexpr size_t huge_bytes = size_t{10} << 20;
    auto* huge = static_cast<unsigned char*>(allocator.allocate(huge_bytes));
    if (huge == nullptr) broken("no memory for 10 MiB");
    for (size_t at = 0; at < huge_bytes; at += 4096) huge[at] = 1;
    uint64_t bytes = huge_bytes;
    for (unsigned step = 0; step < 200000; ++step) {
      Block& block = live[random() % live.size()];
      if (block.bytes != nullptr) {
        bytes -= block.size;
        allocator.free(block.bytes, block.size, 16);
        block.bytes = nullptr;
      }
      const size_t size = pick_size(random);
      if (bytes + size > peak_bytes / 2) continue;
      block = {static_cast<unsigned char*>(allocator.allocate(size)), size, 16, 0};
      if (block.bytes == nullptr) broken("no memory for " + std::to_string(size) + " bytes");
      bytes += size;
      for (size_t at = 0; at < size; at += 4096) block.bytes[at] = 1;
      block.bytes[size - 1] = 1;
    }
    ++done;
    while (!leave) std::this_thread::yield();
    allocator.free(huge, huge_bytes, 16);
    for (Block& block : live) {
      if (block.bytes != nullptr) allocator.free(block.bytes, block.size, 16);
    }
    allocator.thread_stop();
  };
  std::thread first(work, 0);
  std::thread second(work, 1);
  while (ready < 2) std::this_thread::yield();
  const uint64_t before = minor_faults();
  go = true;
  while (done < 2) std::this_thread::yield();
  const uint64_t result = minor_faults() - before;
  leave = true;
  first.join();
  second.join();
  return result;
}

const by_adapter& load(const char* path, const char* options, bool populate) {
  void* file = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (file == nullptr) broken(dlerror());
  const auto get = reinterpret_cast<const by_adapter* (*)()>(dlsym(file, "by_adapter_get"));
  if (get == nullptr) broken(std::string(path) + " is no adapter");
  const by_adapter& adapter = *get();
  std::array<char, 512> error{};
  by_adapter_setup setup{};
  setup.abi = BY_ADAPTER_ABI;
  setup.threads = 4;
  setup.peak_bytes = peak_bytes;
  setup.peak_blocks = peak_bytes / 256;
  setup.pool_bytes = 2 * peak_bytes;
  setup.populate = populate ? 1 : 0;
  setup.options = options;
  setup.error = error.data();
  setup.error_bytes = error.size();
  if (adapter.init(&setup) != 0) broken(error.data());
  return adapter;
}

}  // namespace

int main(int count, char** words) {
  if (count != 5) {
    std::fprintf(stderr, "usage: adapter-exercise (use|faults) ADAPTER OPTIONS (0|1)\n");
    return 2;
  }
  Allocator allocator(load(words[2], words[3], std::string_view(words[4]) == "1"));
  if (std::string_view(words[1]) == "faults") {
    std::printf("%llu\n", static_cast<unsigned long long>(faults(allocator)));
  } else {
    use(allocator);
  }
  return 0;
}
