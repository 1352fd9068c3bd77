// Temp job's memory: chunks of 64 KiB and their doubles, taken from the operating system once and kept.
//
// A chunk is aligned to 64 KiB and begins with its Chunk record. Every block begins in the chunk's first 64 KiB, so
// masking its address finds the record.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "base/atomic.hpp"
#include "blockyard/lifetime.h"
#include "blockyard/temp_job.hpp"

namespace blockyard::lifetime {

/// ChunkCount: says when the last block of a chunk is freed, although the chunk's owner counts without atomic
/// operations.
///
/// While a chunk has an owner, that thread counts its own allocations less its own frees in a plain number. All other
/// frees go below zero in `outside`. When the owner retires the chunk, it adds its number. From then on `outside` is
/// the number of live blocks, and whoever brings it to zero, which happens once, has the chunk.
///
/// Source: Choi, Shull, Torrellas, "Biased reference counting", PACT 2018; the owner's count is merged when it moves
/// on.
template <class Atomics = base::StandardAtomics>
class ChunkCount {
 public:
  ChunkCount() = default;

  /// Another thread than the owner freed a block. True: it was the last, and the caller has the chunk.
  bool free_one() {
    // release: writes to the block come before the chunk's next owner; acquire: the caller may be that owner.
    return outside_.fetch_add(-1, std::memory_order_acq_rel) == 1;
  }

  /// The owner moves on; `live` is its own count. True: no block is live, and the caller has the chunk.
  bool retire(std::int64_t live) { return outside_.fetch_add(live, std::memory_order_acq_rel) + live == 0; }

  /// For the owner: whether every block was freed. Then no other thread will touch the chunk.
  bool is_empty(std::int64_t live) const { return outside_.load(std::memory_order_acquire) + live == 0; }

  /// For whoever has the chunk.
  void reset() { outside_.store(0, std::memory_order_relaxed); }

 private:
  typename Atomics::template atomic<std::int64_t> outside_{0};
};

struct alignas(64) Chunk : JobChunk {
  std::uint64_t magic;  ///< chunk_magic in use; hidden_magic if free and the rest is as hide() left it
  std::uint32_t index;  ///< in the store's tables
  std::uint32_t order;  ///< its size is chunk_bytes << order
  ChunkCount<> count;
};
inline constexpr std::uint64_t chunk_magic = 0x6b6e'7568'635f'7962;
inline constexpr std::uint64_t hidden_magic = 0x6e65'6464'6968'7962;

inline Chunk* chunk_of(const void* block) {
  return reinterpret_cast<Chunk*>(reinterpret_cast<std::uintptr_t>(block) & ~(chunk_bytes - 1));
}

/// A chunk of chunk_bytes << order with count 0. Lock-free if one is free; else a lock and at most three calls into the
/// operating system. nullptr when memory is exhausted. Any thread.
Chunk* take_chunk(unsigned order);

/// Gives a chunk without blocks back. Lock-free; one above 64 MiB goes to the operating system at once.
void give_chunk(Chunk* chunk);

/// Gives the memory of every free chunk back to the operating system. Returns its bytes.
std::size_t discard_free_chunks();

/// Sets what the statistics say of chunks.
void count_chunks(by_lifetime_statistics* statistics);

}  // namespace blockyard::lifetime
