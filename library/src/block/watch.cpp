// Watched pools: double free, foreign free and use after free; AddressSanitizer and Valgrind.
#include "block/watch.hpp"

#include <array>
#include <atomic>
#include <cstdio>
#include <new>

#include "base/once.hpp"
#include "base/pages.hpp"
#include "block/pool.hpp"
#include "blockyard/static_block_allocator.hpp"
#include "checks/quarantine.hpp"
#include "checks/report.hpp"
#include "checks/valgrind.hpp"
#include "checks/watched.hpp"

namespace blockyard::block {
namespace {

// So many freed blocks of a pool wait before the oldest is handed out again, so that a late use still finds the poison.
constexpr std::size_t least_waiting = 256;

[[noreturn]] void fail(const char* fault, const void* block, std::size_t stride = 0) {
  char what[120];
  if (stride != 0) {
    std::snprintf(what, sizeof what, "%s, of a pool of %zu-byte blocks", fault, stride);
    fault = what;
  }
  watched_lock.unlock();  // whoever has it: a report names frames, which may allocate, and ends the process
  checks::report_fault(fault, block);
}

constinit std::atomic<long> fail_countdown{-1};

// What lives where a block may begin: nothing, a block, or a static one of the type with this number. A granule's table
// is made with its first block, and stays.
constexpr std::uint16_t nothing = 0;
constexpr std::uint16_t untyped = 1;
using Kinds = std::array<std::uint16_t, granule_bytes / least_stride>;

Kinds** tables() {
  static auto* const all =
      static_cast<Kinds**>(base::reserve_pages(by_block_window.bytes / granule_bytes * sizeof(Kinds*)));
  return all;
}

// nullptr: no block of this granule ever lived, or with `make`, memory for its table is exhausted.
std::uint16_t* kind_of(const void* block, bool make = false) {
  const auto offset = static_cast<std::size_t>(static_cast<const std::byte*>(block) - by_block_window.base);
  Kinds*& kinds = tables()[offset / granule_bytes];
  if (kinds == nullptr && make) {
    kinds = static_cast<Kinds*>(window_record(sizeof(Kinds)));
  }
  return kinds == nullptr ? nullptr : &(*kinds)[offset % granule_bytes / least_stride];
}

// Guarded by watched_lock.
constinit std::array<TypeRecord*, 4096> numbered_types{};  // types beyond are reported as untyped
constinit std::uint16_t last_type = untyped;

// The slab that holds an address, whatever the size of its blocks: a slab of 2^order granules begins at a multiple of
// as many. Ends the process when there is none.
BlockSlab* slab_at(const void* block) {
  if (!in_window(block)) {
    fail("foreign free (no block allocator ever made this address)", block);
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
  fail("foreign free (no live slab is here)", block);
}

}  // namespace

constinit base::Mutex watched_lock;

// Freed blocks in the order of their frees.
class Watch : public checks::Quarantine<void*> {};

bool process_is_watched() {
  static constinit base::Once<bool> watched;
  return watched.get([] { return checks::is_watched() || leaks_wanted() != 0; });
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
  if (memory == nullptr || tables() == nullptr) {
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
  VALGRIND_CREATE_MEMPOOL(pool, 0, 0);
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
    if (checks::fill_hidden() &&
        !checks::is_filled(block, static_cast<std::byte*>(block) + pool->stride, checks::freed_byte)) {
      fail("use after free (the block was written to while it was free)", block, pool->stride);
    }
  }
  std::uint16_t* const kind = kind_of(block, true);
  if (kind == nullptr) {
    checks::hide(block, pool->stride);
    pool->watch->push(block);
    return nullptr;
  }
  *kind = untyped;
  checks::show(block, pool->stride);
  VALGRIND_MEMPOOL_ALLOC(pool, block, pool->stride);
  checks::announce_allocated(block, pool->stride, 0);
  return block;
}

void watch_type(const void* block, TypeRecord* type) {
  if (type->number == 0 && !type->counted && last_type + std::size_t{1} < numbered_types.size()) {
    type->number = ++last_type;
    numbered_types[last_type] = type;
  }
  if (type->number != 0) {
    *kind_of(block) = type->number;
    type->live.fetch_add(1, std::memory_order_relaxed);
  }
}

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
  std::uint16_t* const kind = kind_of(block);
  if (kind == nullptr || *kind == nothing) {
    fail("double free", block, owner->stride);
  }
  if (*kind > untyped) {
    numbered_types[*kind]->live.fetch_sub(1, std::memory_order_relaxed);
  }
  *kind = nothing;
  checks::announce_freed(block);
  VALGRIND_MEMPOOL_FREE(owner, block);
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
        if (const std::uint16_t* const kind = kind_of(block); kind != nullptr && *kind != nothing) {
          checks::announce_freed(block);
        }
      }
      checks::show(address_of(index), slab_bytes);
      for (Index part = index; part != index + slab_step(pool); ++part) {
        if (Kinds* const kinds = tables()[part]; kinds != nullptr) {
          kinds->fill(nothing);
        }
      }
    }
  }
  pool->watch->clear();
}

void watch_pool_ends(Pool* pool) {
  if (pool->watch == nullptr) {
    return;
  }
  watch_reset(pool);
  VALGRIND_DESTROY_MEMPOOL(pool);
  pool->watch->release();
}

std::size_t watch_waiting(const Pool* pool) { return pool->watch == nullptr ? 0 : pool->watch->count(); }

}  // namespace blockyard::block
