// Watched pools: double free, foreign free and use after free; AddressSanitizer and Valgrind.
#include "block/watch.hpp"

#include <array>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <new>

#include "base/pages.hpp"
#include "base/say.hpp"
#include "block/pool.hpp"
#include "blockyard/static_block_allocator.hpp"
#include "checks/quarantine.hpp"
#include "checks/watched.hpp"

#if __has_include(<valgrind/memcheck.h>)
#include <valgrind/memcheck.h>
#define BLOCKYARD_VALGRIND 1
#else
#define BLOCKYARD_VALGRIND 0
#endif

namespace blockyard::block {
namespace {

// So many freed blocks of a pool wait before the oldest is handed out again, so that a late use still finds the poison.
constexpr std::size_t least_waiting = 256;

[[noreturn]] void fail(const char* fault, const void* block, std::size_t stride) {
  if (stride != 0) {
    base::say("blockyard: %s: block %p of a pool of %zu-byte blocks\n", fault, block, stride);
  } else {
    base::say("blockyard: %s: %p\n", fault, block);
  }
  std::abort();
}

constinit std::atomic<long> fail_countdown{-1};

// One bit per block. Each granule has as many as the smallest blocks need.
constexpr std::size_t bitmap_bytes = granule_bytes / least_stride / 8;

unsigned char* bitmaps() {
  static unsigned char* const table =
      static_cast<unsigned char*>(base::reserve_pages(by_block_window.bytes / granule_bytes * bitmap_bytes));
  return table;
}

struct LiveBit {
  unsigned char* byte;
  unsigned char mask;

  LiveBit(const Pool* pool, const void* block) {
    const Index index = index_of(slab_of(block, slab_mask_of(pool->shift)));
    const std::size_t offset = static_cast<std::size_t>(static_cast<const std::byte*>(block) - address_of(index));
    const std::size_t number = offset / pool->stride;
    byte = bitmaps() + index * bitmap_bytes + number / 8;
    mask = static_cast<unsigned char>(1u << (number % 8));
  }
  bool test() const { return (*byte & mask) != 0; }
  void set() const { *byte |= mask; }
  void clear() const { *byte = static_cast<unsigned char>(*byte & ~mask); }
};

}  // namespace

// Freed blocks in the order of their frees.
class Watch : public checks::Quarantine<void*> {};

bool process_is_watched() {
  static const bool watched = checks::is_watched() || leaks_wanted() != 0;
  return watched;
}

void watch_fail_after(long more) { fail_countdown.store(more, std::memory_order_relaxed); }

bool watch_fails_now() {
  const long left = fail_countdown.load(std::memory_order_relaxed);
  if (left > 0) {
    fail_countdown.store(left - 1, std::memory_order_relaxed);
  }
  return left == 0;
}

bool watch_pool(Pool* pool) {
  void* const memory = window_record(sizeof(Watch));
  if (memory == nullptr || bitmaps() == nullptr) {
    return false;
  }
  // The fast path must never see a slab: the pool finds its own through a pointer that only it has.
  BlockSlab** const hidden = static_cast<BlockSlab**>(window_record(sizeof(BlockSlab*)));
  if (hidden == nullptr) {
    return false;
  }
  *hidden = &by_block_no_slab;
  pool->current = hidden;
  pool->watch = new (memory) Watch;
#if BLOCKYARD_VALGRIND
  VALGRIND_CREATE_MEMPOOL(pool, 0, 0);
#endif
  return true;
}

void* watch_allocate(Pool* pool) {
  if (watch_fails_now()) {
    return nullptr;
  }
  void* block = nullptr;
  if (pool->watch->count() < least_waiting) {
    block = pool_allocate_slow(pool);
    if (block != nullptr) {
      // A free by an unchecked caller's fast path must lead to free_slow(): see watch_undo_put().
      BlockSlab* const record = slab_of(block, slab_mask_of(pool->shift));
      record->floor = slab_live(*record) - 1;
      record->excess = 1;
    }
  }
  if (block == nullptr) {
    if (pool->watch->count() == 0) {
      return nullptr;
    }
    block = pool->watch->pop();
    if (checks::find_write(block, pool->stride) != nullptr) {
      fail("use after free (the block was written to while it was free)", block, pool->stride);
    }
  }
  checks::show(block, pool->stride);
  LiveBit(pool, block).set();
#if BLOCKYARD_VALGRIND
  VALGRIND_MEMPOOL_ALLOC(pool, block, pool->stride);
#endif
  checks::announce_allocated(block, pool->stride, 0);
  return block;
}

namespace {

// The type of each static block: a number per place where a block may begin. A granule's table is made with its first
// typed block, and stays.
using TypeNumbers = std::array<std::uint16_t, granule_bytes / least_stride>;
constinit std::array<TypeRecord*, 4096> numbered_types{};  // from 1 on; types beyond are reported as untyped
constinit std::uint16_t type_count = 0;

// nullptr when there is none, or memory for it is exhausted.
std::uint16_t* type_number_of(const void* block, bool make) {
  static TypeNumbers** const tables =
      static_cast<TypeNumbers**>(base::reserve_pages(by_block_window.bytes / granule_bytes * sizeof(TypeNumbers*)));
  if (tables == nullptr) {
    return nullptr;
  }
  const std::size_t offset = static_cast<std::size_t>(static_cast<const std::byte*>(block) - by_block_window.base);
  TypeNumbers*& numbers = tables[offset / granule_bytes];
  if (numbers == nullptr && make) {
    numbers = static_cast<TypeNumbers*>(window_record(sizeof(TypeNumbers)));
  }
  return numbers == nullptr ? nullptr : &(*numbers)[offset % granule_bytes / least_stride];
}

}  // namespace

void watch_type(const void* block, TypeRecord* type) {
  if (type->counted) {
    return;
  }
  if (type->number == 0) {
    if (type_count + std::size_t{1} == numbered_types.size()) {
      return;
    }
    type->number = ++type_count;
    numbered_types[type_count] = type;
  }
  if (std::uint16_t* const number = type_number_of(block, true)) {
    *number = type->number;
    type->live.fetch_add(1, std::memory_order_relaxed);
  }
}

void watch_forget_type(const void* block) {
  if (!in_window(block)) {
    return;
  }
  std::uint16_t* const number = type_number_of(block, false);
  if (number != nullptr && *number != 0) {
    numbered_types[*number]->live.fetch_sub(1, std::memory_order_relaxed);
    *number = 0;
  }
}

namespace {

// The slab that holds an address, whatever the size of its blocks: a slab of 2^order granules begins at a multiple of
// as many. Ends the process when there is none.
BlockSlab* slab_at(const void* block) {
  if (!in_window(block)) {
    fail("foreign free (no block allocator ever made this address)", block, 0);
  }
  const Index inside = index_of(slab_of(block, slab_mask_of(slab_shift)));
  for (unsigned order = 0; order <= max_order; ++order) {
    const Index first = inside & ~((Index{1} << order) - 1);
    if (granule(first).state != SlabUse::unused) {
      if (slab(first).pool.load(std::memory_order_relaxed)->shift < slab_shift + order) {
        break;  // its slab ends before the address
      }
      return &slab(first);
    }
  }
  fail("foreign free (no live slab is here)", block, 0);
}

}  // namespace

void watch_free(const Pool* pool, const BlockSlab* supposed, void* block) {
  const BlockSlab* const record = slab_at(block);
  Pool* const owner = record->pool.load(std::memory_order_relaxed);
  if (supposed != nullptr ? record != supposed : owner != pool) {
    fail("foreign free (the block is another pool's)", block, owner->stride);
  }
  const std::size_t offset = static_cast<std::size_t>(static_cast<std::byte*>(block) - address_of(index_of(record)));
  if (offset % owner->stride != 0) {
    fail("foreign free (the address is inside a block)", block, owner->stride);
  }
  const LiveBit live(owner, block);
  if (!live.test()) {
    fail("double free", block, owner->stride);
  }
  live.clear();
  checks::announce_freed(block);
#if BLOCKYARD_VALGRIND
  VALGRIND_MEMPOOL_FREE(owner, block);
#endif
  checks::hide(block, owner->stride);
  owner->watch->push(block);  // if the ring cannot grow, the block is lost, which is safe
}

void watch_undo_put(BlockSlab* record) {
  record->free = link_of(record->free);
  record->excess = 1;
}

void watch_reset(Pool* pool) {
  if (pool->watch == nullptr) {
    return;
  }
  const std::size_t slab_bytes = std::size_t{1} << pool->shift;
  for (Index page = pool->pages; page != 0; page = granule(page).next) {
    for (Index index = page; index != granule(page).uncut; index += slab_step(pool)) {
      for (std::uint32_t number = 0; checks::listener() != nullptr && number < pool->capacity; ++number) {
        const std::byte* const block = address_of(index) + std::size_t{number} * pool->stride;
        if (LiveBit(pool, block).test()) {
          checks::announce_freed(block);
        }
      }
      checks::show(address_of(index), slab_bytes);
      std::memset(bitmaps() + index * bitmap_bytes, 0, bitmap_bytes);
    }
  }
  pool->watch->clear();
}

void watch_pool_ends(Pool* pool) {
  if (pool->watch == nullptr) {
    return;
  }
  watch_reset(pool);
#if BLOCKYARD_VALGRIND
  VALGRIND_DESTROY_MEMPOOL(pool);
#endif
  pool->watch->release();
}

std::size_t watch_waiting(const Pool* pool) { return pool->watch == nullptr ? 0 : pool->watch->count(); }

}  // namespace blockyard::block
