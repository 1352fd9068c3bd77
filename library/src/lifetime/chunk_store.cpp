// Free chunks wait in one lock-free stack per size; only memory that was never used is under a lock.
#include "lifetime/chunk_store.hpp"

#include <array>
#include <mutex>
#include <new>

#include "base/pages.hpp"
#include "checks/watched.hpp"
#include "heap/index_stack.hpp"
#include "lifetime/thread_state.hpp"

namespace blockyard::lifetime {
namespace {

constexpr std::uint32_t table_size = 1u << 16;
constexpr unsigned order_count = 15;      // up to 1 GiB
constexpr unsigned last_kept_order = 10;  // 64 MiB: larger chunks are not worth keeping for a few frames
constexpr std::size_t span_bytes = std::size_t{1} << 20;

constinit std::array<std::atomic<std::uint32_t>, table_size> links{};
constinit std::array<std::atomic<void*>, table_size> memory{};  // address of the chunk
constinit std::array<heap::IndexStack<>, order_count> free_chunks{};
constinit heap::IndexStack<> free_indices{};

// Under rare_lock.
constinit std::uint32_t fresh_index = 1;  // 0 is none
constinit std::byte* span_next = nullptr;
constinit std::byte* span_end = nullptr;

constinit std::atomic<std::size_t> held{0};
constinit std::atomic<std::size_t> used{0};
constinit std::atomic<std::size_t> peak_used{0};

std::atomic<std::uint32_t>& link(std::uint32_t index) { return links[index]; }
std::size_t bytes_of(unsigned order) { return chunk_bytes << order; }

// Memory that was never a chunk. The caller holds rare_lock.
void* fresh_memory(unsigned order) {
  if (order != 0) {
    return base::reserve_pages(bytes_of(order), chunk_bytes);
  }
  if (span_next == span_end) {
    void* const span = base::reserve_pages(span_bytes, chunk_bytes);
    if (span == nullptr) {
      return nullptr;
    }
    span_next = static_cast<std::byte*>(span);
    span_end = span_next + span_bytes;
  }
  void* const chunk = span_next;
  span_next += chunk_bytes;
  return chunk;
}

std::uint32_t make_chunk(unsigned order) {
  const std::lock_guard lock(rare_lock);
  std::uint32_t index = free_indices.pop(link);
  if (index == 0) {
    if (fresh_index == table_size) {
      return 0;
    }
    index = fresh_index++;
  }
  void* const pages = fresh_memory(order);
  if (pages == nullptr) {
    free_indices.push(index, link);
    return 0;
  }
  memory[index].store(pages, std::memory_order_relaxed);
  held.fetch_add(bytes_of(order), std::memory_order_relaxed);
  return index;
}

}  // namespace

Chunk* take_chunk(unsigned order) {
  if (order >= order_count) {
    return nullptr;
  }
  std::uint32_t index = free_chunks[order].pop(link);
  if (index == 0) {
    index = make_chunk(order);
  }
  if (index == 0) {
    return nullptr;
  }
  const std::size_t now = used.fetch_add(bytes_of(order), std::memory_order_relaxed) + bytes_of(order);
  std::size_t peak = peak_used.load(std::memory_order_relaxed);
  while (now > peak && !peak_used.compare_exchange_weak(peak, now, std::memory_order_relaxed)) {
  }
  void* const pages = memory[index].load(std::memory_order_relaxed);
  if (static_cast<Chunk*>(pages)->magic == hidden_magic) {  // fresh and discarded memory is zero
    checks::check_untouched(static_cast<Chunk*>(pages) + 1, bytes_of(order) - sizeof(Chunk));
  }
  Chunk* const chunk = new (pages) Chunk;
  chunk->magic = chunk_magic;
  chunk->index = index;
  chunk->order = order;
  checks::hide(chunk + 1, bytes_of(order) - sizeof(Chunk));
  return chunk;
}

void give_chunk(Chunk* chunk) {
  const std::uint32_t index = chunk->index;
  const unsigned order = chunk->order;
  chunk->magic = checks::fill_hidden() ? hidden_magic : 0;
  used.fetch_sub(bytes_of(order), std::memory_order_relaxed);
  if (order <= last_kept_order) {
    free_chunks[order].push(index, link);
    return;
  }
  checks::show(chunk, bytes_of(order));
  base::release_pages(chunk, bytes_of(order));
  held.fetch_sub(bytes_of(order), std::memory_order_relaxed);
  free_indices.push(index, link);
}

std::size_t discard_free_chunks() {
  std::size_t bytes = 0;
  for (unsigned order = 0; order <= last_kept_order; ++order) {
    // Pop all first: one that was pushed back must not be popped again.
    std::uint32_t discarded = 0;
    while (const std::uint32_t index = free_chunks[order].pop(link)) {
      if (base::discard_pages(memory[index].load(std::memory_order_relaxed), bytes_of(order))) {
        bytes += bytes_of(order);
      }
      link(index).store(discarded, std::memory_order_relaxed);
      discarded = index;
    }
    while (discarded != 0) {
      const std::uint32_t next = link(discarded).load(std::memory_order_relaxed);
      free_chunks[order].push(discarded, link);
      discarded = next;
    }
  }
  return bytes;
}

void count_chunks(by_lifetime_statistics* statistics) {
  statistics->temp_job_chunk_bytes = held.load(std::memory_order_relaxed);
  statistics->temp_job_free_bytes = statistics->temp_job_chunk_bytes - used.load(std::memory_order_relaxed);
  statistics->temp_job_peak_bytes = peak_used.load(std::memory_order_relaxed);
}

}  // namespace blockyard::lifetime
