// Temp job's memory: chunks of 64 KiB and their doubles, taken from the operating system once and kept.
//
// A chunk is aligned to 64 KiB and begins with its Chunk record. Every block begins in the chunk's first 64 KiB, so
// masking its address finds the record.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "blockyard/temp_job.hpp"
#include "lifetime/chunk_count.hpp"

namespace blockyard::lifetime {

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

struct ChunkFigures {
  std::size_t held_bytes;
  std::size_t used_bytes;
  std::size_t peak_used_bytes;
};
ChunkFigures chunk_figures();

}  // namespace blockyard::lifetime
