#include "support/populate.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <new>
#include <span>
#include <utility>

namespace blockyard::adapters {
namespace {

constexpr size_t page_bytes = 4096;
constexpr std::array<size_t, 23> small_sizes = {16,  32,  48,  64,  80,   96,   112,  128,  160,  192,   224,  256,
                                                320, 384, 512, 768, 1024, 1536, 2048, 4096, 8192, 16384, 32768};
constexpr std::array<size_t, 5> large_sizes = {size_t{64} << 10, size_t{256} << 10, size_t{1} << 20, size_t{2} << 20,
                                               size_t{4} << 20};

/// The last block taken, which begins with the one before it: a list elsewhere may use the allocator under test.
struct Taken {
  Taken* before;
};

void touch(void* block, size_t size) {
  auto* bytes = static_cast<volatile char*>(block);
  for (size_t at = 0; at < size; at += page_bytes) bytes[at] = 0;
  bytes[size - 1] = 0;
}

bool take(const by_adapter& adapter, std::span<const size_t> sizes, uint64_t bytes_each, Taken*& last) {
  for (const size_t size : sizes) {
    for (uint64_t taken = 0; taken < bytes_each; taken += size) {
      void* block = adapter.allocate(size);
      if (block == nullptr) return false;
      touch(block, size);
      last = new (block) Taken{last};
    }
  }
  return true;
}

}  // namespace

void populate_by_use(const by_adapter& adapter, uint64_t bytes, uint64_t largest_block) {
  const auto fitting = [largest_block](const auto& sizes) {
    return static_cast<size_t>(std::upper_bound(sizes.begin(), sizes.end(), largest_block) - sizes.begin());
  };
  const std::span small(small_sizes.data(), fitting(small_sizes));
  const std::span large(large_sizes.data(), fitting(large_sizes));
  const uint64_t small_bytes = large.empty() ? bytes : bytes / 4;
  const uint64_t small_each = small.empty() ? 0 : small_bytes / small.size();
  const uint64_t large_each = large.empty() ? 0 : (bytes - small_bytes) / large.size();
  Taken* last = nullptr;
  // Large blocks first: an allocator that carves upwards then has the small blocks' pages at its top, where it takes
  // memory next.
  if (take(adapter, large, large_each, last)) take(adapter, small, small_each, last);
  while (last != nullptr) adapter.free(std::exchange(last, last->before));
}

void* map_aligned(size_t size, size_t alignment) {
  const size_t reserve = size + alignment;
  void* memory = mmap(nullptr, reserve, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) return nullptr;
  const auto base = reinterpret_cast<uintptr_t>(memory);
  const uintptr_t at = (base + alignment - 1) & ~(uintptr_t{alignment} - 1);
  if (at > base) munmap(memory, at - base);
  if (base + reserve > at + size) munmap(reinterpret_cast<void*>(at + size), base + reserve - at - size);
  return reinterpret_cast<void*>(at);
}

bool PopulatedRegion::reserve(uint64_t bytes) {
  // Aligned to 64 MiB, the largest alignment that an allocator asks for (mimalloc, for its arenas).
  constexpr size_t region_alignment = size_t{64} << 20;
  const size_t size = (bytes + page_bytes - 1) / page_bytes * page_bytes;
  void* memory = map_aligned(size, region_alignment);
  if (memory == nullptr) return false;
  begin_ = reinterpret_cast<uintptr_t>(memory);
  end_ = begin_ + size;
  touch(memory, size);
  next_.store(begin_, std::memory_order_relaxed);
  return true;
}

void* PopulatedRegion::take(size_t bytes, size_t alignment) {
  uintptr_t next = next_.load(std::memory_order_relaxed);
  for (;;) {
    const uintptr_t at = (next + alignment - 1) & ~(uintptr_t{alignment} - 1);
    if (next == 0 || at < next || at > end_ || bytes > end_ - at) return nullptr;
    if (next_.compare_exchange_weak(next, at + bytes, std::memory_order_relaxed)) return reinterpret_cast<void*>(at);
  }
}

}  // namespace blockyard::adapters
