#include "support/populate.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <span>

namespace blockyard::adapters {
namespace {

constexpr size_t page_bytes = 4096;
constexpr std::array<size_t, 23> small_sizes = {16,  32,  48,  64,  80,   96,   112,  128,  160,  192,   224,  256,
                                                320, 384, 512, 768, 1024, 1536, 2048, 4096, 8192, 16384, 32768};
constexpr std::array<size_t, 5> large_sizes = {size_t{64} << 10, size_t{256} << 10, size_t{1} << 20, size_t{2} << 20,
                                               size_t{4} << 20};

/// The blocks taken so far. Mapped, because std::vector may use the allocator under test.
class Blocks {
 public:
  explicit Blocks(size_t capacity) : capacity_(capacity) {
    void* memory = mmap(nullptr, capacity * sizeof(void*), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    blocks_ = memory == MAP_FAILED ? nullptr : static_cast<void**>(memory);
  }
  Blocks(const Blocks&) = delete;
  Blocks& operator=(const Blocks&) = delete;
  ~Blocks() {
    if (blocks_ != nullptr) munmap(blocks_, capacity_ * sizeof(void*));
  }

  bool push(void* block) {
    if (blocks_ == nullptr || count_ == capacity_) return false;
    blocks_[count_++] = block;
    return true;
  }
  void* pop() { return count_ == 0 ? nullptr : blocks_[--count_]; }

 private:
  size_t capacity_;
  size_t count_ = 0;
  void** blocks_ = nullptr;
};

void touch(void* block, size_t size) {
  auto* bytes = static_cast<volatile char*>(block);
  for (size_t at = 0; at < size; at += page_bytes) bytes[at] = 0;
  bytes[size - 1] = 0;
}

bool take(const by_adapter& adapter, std::span<const size_t> sizes, uint64_t bytes_each, Blocks& blocks) {
  for (const size_t size : sizes) {
    for (uint64_t taken = 0; taken < bytes_each; taken += size) {
      void* block = adapter.allocate(size);
      if (block == nullptr) return false;
      touch(block, size);
      if (!blocks.push(block)) {
        adapter.free(block);
        return false;
      }
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
  size_t capacity = small.size() + large.size();
  for (const size_t size : small) capacity += small_each / size;
  for (const size_t size : large) capacity += large_each / size;
  Blocks blocks(capacity);
  // Large blocks first: an allocator that carves upwards then has the small blocks' pages at its top, where it takes
  // memory next.
  if (take(adapter, large, large_each, blocks)) take(adapter, small, small_each, blocks);
  while (void* block = blocks.pop()) adapter.free(block);
}

bool PopulatedRegion::reserve(uint64_t bytes) {
  // Aligned to 64 MiB, the largest alignment that an allocator asks for (mimalloc, for its arenas).
  constexpr size_t region_alignment = size_t{64} << 20;
  const size_t size = (bytes + page_bytes - 1) / page_bytes * page_bytes;
  void* memory = mmap(nullptr, size + region_alignment, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) return false;
  const auto base = reinterpret_cast<uintptr_t>(memory);
  begin_ = (base + region_alignment - 1) & ~(region_alignment - 1);
  end_ = begin_ + size;
  if (begin_ > base) munmap(memory, begin_ - base);
  if (base + size + region_alignment > end_)
    munmap(reinterpret_cast<void*>(end_), base + size + region_alignment - end_);
  touch(begin(), size);
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
