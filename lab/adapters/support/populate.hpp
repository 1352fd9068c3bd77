/// Populated memory for prefaulted variants, in two ways.
#ifndef BLOCKYARD_ADAPTERS_SUPPORT_POPULATE_HPP
#define BLOCKYARD_ADAPTERS_SUPPORT_POPULATE_HPP

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "blockyard/adapter.h"

namespace blockyard::adapters {

/// Allocates `bytes` in a spread of sizes, writes to every page, and frees all in reverse order. What the allocator
/// keeps of it is populated. Works through `adapter`'s own functions on the calling thread, so it reaches what this
/// thread would allocate from; caches and arenas of other threads stay empty.
///
/// A quarter of the bytes goes to blocks of 16 B to 32 KiB, evenly by bytes. The rest goes to blocks of 64 KiB to 4
/// MiB, which allocators that split and join can use for any size; an allocator with a region for each size class has
/// them for that class only. Stops early, without an error, when the allocator has no more memory. `largest_block`
/// leaves out larger sizes, for allocators that keep those apart; the smaller ones then get all of the bytes.
void populate_by_use(const by_adapter& adapter, uint64_t bytes, uint64_t largest_block = UINT64_MAX);

/// Fresh zeroed memory at a multiple of `alignment`, which is a power of two and no less than a page; nullptr when the
/// system refuses.
void* map_aligned(size_t size, size_t alignment);

/// For allocators that can be given a source of memory: one mapping, populated page by page when reserved, and carved
/// upwards without asking the operating system.
class PopulatedRegion {
 public:
  /// Maps `bytes` and writes to every page. False when the system refuses. Not thread-safe; call once.
  bool reserve(uint64_t bytes);

  /// `bytes` at a multiple of `alignment` (a power of two), zeroed and populated; nullptr once the region is used up.
  /// Thread-safe, lock-free, O(1). Memory is never given back to it.
  void* take(size_t bytes, size_t alignment);

  [[nodiscard]] bool contains(const void* address) const {
    const auto at = reinterpret_cast<uintptr_t>(address);
    return at >= begin_ && at < end_;
  }
  [[nodiscard]] void* begin() const { return reinterpret_cast<void*>(begin_); }
  [[nodiscard]] size_t size() const { return end_ - begin_; }

 private:
  uintptr_t begin_ = 0;
  uintptr_t end_ = 0;
  std::atomic<uintptr_t> next_{0};
};

}  // namespace blockyard::adapters
#endif
