// The process-wide pools: per-thread state, how it passes from ended threads to others, chains, and statistics.
//
// O(1), except when a thread ends or takes over another's state (O(sizes in use)) and for statistics (O(slabs)). A
// thread takes 8 KiB, which the next thread reuses. Nothing here has a destructor. The order of locks: watched_lock,
// chain_lock, parked_lock (states of ended threads), then those of the window (window.hpp).
#include <algorithm>
#include <array>
#include <mutex>
#include <new>

#include "base/pages.hpp"
#include "base/threads.hpp"
#include "block/give_back.hpp"
#include "block/pool.hpp"
#include "block/watch.hpp"
#include "blockyard/static_block_allocator.hpp"
#include "threads/registry.hpp"

namespace blockyard::block {
namespace {

struct ThreadPools : ThreadBlocks, threads::Registered<ThreadPools> {
  std::array<std::atomic<Pool*>, slot_count> pools{};
};

// A slot's freed chains, and magazines of remotely freed blocks: up to 128 KiB. Any thread takes from them.
struct Chains {
  std::atomic<void*> first{nullptr};
  std::atomic<std::size_t> waiting{0};  ///< blocks in both that were not handed out again, counted by the chain
  std::atomic<std::size_t> magazine_count{0};
  std::atomic<bool> needed{false};  ///< whether a chain came or went lately
  /// Held while somebody takes from `first` or adds to it. The program's threads queue for `chain_lock` first; the
  /// background thread, which must not make them wait, takes none but this.
  base::Mutex turn;
  std::array<void*, 64> magazines{};
};

constexpr ThreadBlocks make_no_blocks() {
  ThreadBlocks blocks{};
  for (BlockSlab*& current : blocks.current) {
    current = &by_block_no_slab;
  }
  return blocks;
}

constinit ThreadBlocks no_blocks = make_no_blocks();

constinit base::Mutex parked_lock;
constinit threads::Registry<ThreadPools> registry;

constinit base::Mutex chain_lock;
constinit std::array<Chains, slot_count> chains{};

// Strides above small_stride, in the order of first use. An entry's index gives its slot.
constexpr std::size_t first_large_slot = small_stride / unit + 1;
constinit std::array<std::atomic<std::uint32_t>, slot_count - first_large_slot> large_strides{};

// In a watched process, all threads share one watched pool per slot, guarded by watched_lock.
constinit std::array<Pool*, slot_count> watched{};

std::uint32_t slot_of_stride(std::size_t stride) {
  return stride <= small_stride ? static_cast<std::uint32_t>(stride / unit) : by_static_block_slot(stride);
}

void lock_for_fork() {
  watched_lock.lock();
  chain_lock.lock();
  parked_lock.lock();
  window_lock();
}

template <bool in_child>
void unlock_after_fork() {
  if (in_child) {
    registry.forget_late();
  }
  window_unlock(in_child);
  parked_lock.unlock();
  chain_lock.unlock();
  watched_lock.unlock();
}

// Before there is a thread that could hold a lock while another forks.
[[gnu::constructor(102)]] void handle_forks() {
  base::around_fork(lock_for_fork, unlock_after_fork<false>, unlock_after_fork<true>, [] { registry.forget_late(); });
}

template <class Work>
void for_each_pool(const ThreadPools* state, Work&& work) {
  for (const std::atomic<Pool*>& entry : state->pools) {
    if (Pool* const pool = entry.load(std::memory_order_relaxed); pool != nullptr) {
      work(pool);
    }
  }
}

void return_chains(const ThreadPools* state) { for_each_pool(state, pool_free_chain_slab); }  // back to their slabs

void park(void* value) {
  auto* const state = static_cast<ThreadPools*>(value);
  thread_blocks() = &no_blocks;
  return_chains(state);
  const std::lock_guard lock(parked_lock);
  registry.park(state);
}

// Gives the calling thread a state: that of an ended thread, or a new one.
ThreadPools* enter() {
  threads::Registry<ThreadPools>::Taken taken{};
  {
    const std::lock_guard lock(parked_lock);
    taken = registry.take(park, [] {
      void* const memory = window_record(sizeof(ThreadPools));
      auto* const made = memory != nullptr ? new (memory) ThreadPools : nullptr;
      if (made != nullptr) {
        static_cast<ThreadBlocks&>(*made) = no_blocks;
      }
      return made;
    });
  }
  if (taken.state == nullptr) {
    return nullptr;
  }
  if (taken.was_lost) {
    return_chains(taken.state);
  }
  thread_blocks() = taken.state;
  registry.enter(taken.state, parked_lock);
  return taken.state;
}

Pool* thread_pool(ThreadPools* state, std::uint32_t slot, std::size_t stride) {
  Pool* pool = state->pools[slot].load(std::memory_order_relaxed);
  if (pool == nullptr) {
    pool = pool_create(stride, &state->current[slot]);
    if (pool != nullptr) {
      pool->thread = state;
      pool->slot = slot;
      state->pools[slot].store(pool, std::memory_order_release);
    }
  }
  return pool;
}

void* watched_allocate(std::uint32_t slot, std::size_t stride) {
  const std::lock_guard lock(watched_lock);
  Pool*& pool = watched[slot];
  if (pool == nullptr) {
    Pool* const made = pool_create(stride, nullptr);  // watch_pool() says where its slab is found
    if (made == nullptr || !watch_pool(made)) {
      return nullptr;
    }
    made->slot = slot;
    pool = made;
  }
  return watch_allocate(pool);
}

void watched_free(std::uint32_t slot, const BlockSlab* supposed, void* block) {
  const std::lock_guard lock(watched_lock);
  watch_free(watched[slot], supposed, block);
}

void free_one(void* block, std::size_t stride) {
  BlockSlab* const record = slab_of(block, slab_mask_of(slab_shift_of(stride)));
  if (record->owner.load(std::memory_order_relaxed) != thread_blocks()) {
    pool_free_remote(block, record);
  } else if (!slab_put(record, block, stride)) {
    by_static_block_free_slow(record);
  }
}

void* chain_pop(Chains& kept, std::size_t stride) {
  const std::lock_guard turn(kept.turn);
  void* const first = kept.first.load(std::memory_order_relaxed);
  if (first != nullptr) {
    kept.first.store(next_chain(first, stride), std::memory_order_relaxed);
  }
  return first;
}

void chain_push(Chains& kept, void* first, std::size_t stride) {
  const std::lock_guard turn(kept.turn);
  set_next_chain(first, kept.first.load(std::memory_order_relaxed), stride);
  kept.first.store(first, std::memory_order_relaxed);
}

// Returns the blocks of a slot's chains and magazines to their slabs, one by one.
void free_chains(std::uint32_t slot) {
  const std::size_t stride = static_stride(slot);
  const auto free = [=](void* block) { free_one(block, stride); };
  while (void* const first = static_magazine_take(slot)) {
    static_chain_used(slot, for_each_linked(first, link_of, free));
  }
  while (void* const first = static_chain_take(slot)) {
    static_chain_used(slot, for_each_chained(first, stride, free));
  }
}

}  // namespace

BY_DEFINE_THREAD_VARIABLE(ThreadBlocks*, by_thread_blocks, thread_blocks, &no_blocks)

extern "C" {
void* by_static_block_allocate(std::size_t stride) noexcept {
  const std::uint32_t slot = slot_of_stride(stride);
  if (slot == 0) {
    return nullptr;
  }
  if (process_is_watched()) {
    return watched_allocate(slot, stride);
  }
  ThreadPools* const state = thread_blocks() == &no_blocks ? enter() : static_cast<ThreadPools*>(thread_blocks());
  if (state == nullptr) {
    return nullptr;
  }
  Pool* const pool = thread_pool(state, slot, stride);
  return pool == nullptr ? nullptr : pool_allocate_slow(pool);
}

void* by_static_block_allocate_typed(std::size_t stride, TypeRecord* type) noexcept {
  void* const block = by_static_block_allocate(stride);
  if (block != nullptr && process_is_watched()) {
    const std::lock_guard lock(watched_lock);
    watch_type(block, type);
  }
  return block;
}

void* by_static_block_take(std::size_t stride) {
  void* block = nullptr;
  if (stride <= small_stride) {
    block = slab_take(thread_blocks()->current[stride / unit], stride);
  }
  return block != nullptr ? block : or_bad_alloc(by_static_block_allocate(stride));
}

void by_static_block_give(void* block, std::size_t stride) noexcept { by_static_block_free_checked(block, stride); }

void by_static_block_free_slow(BlockSlab* record) noexcept {
  pool_free_slow(record->pool.load(std::memory_order_relaxed), record);
}

void by_static_block_free_remote(void* block, BlockSlab* record) noexcept {
  if (process_is_watched()) {
    watched_free(0, record, block);
    return;
  }
  if (thread_blocks() != &no_blocks) {
    // The slab's pool may change, but not its stride: the block is live, so its page was not given back.
    const std::uint32_t slot = record->pool.load(std::memory_order_acquire)->slot;
    Pool* const own = static_cast<ThreadPools*>(thread_blocks())->pools[slot].load(std::memory_order_relaxed);
    if (own != nullptr && pool_keep(own, block)) {
      return;
    }
  }
  pool_free_remote(block, record);
}

void by_static_block_free_checked(void* block, std::size_t stride) noexcept {
  if (process_is_watched()) {
    watched_free(slot_of_stride(stride), nullptr, block);
    return;
  }
  free_one(block, stride);
}

void by_static_block_free_chain(std::size_t stride, void* first, void* last, std::size_t count) noexcept {
  set_chain_next(last, nullptr, stride);
  if (process_is_watched()) {
    for_each_chained(first, stride, [=](void* block) { by_static_block_free_checked(block, stride); });
    return;
  }
  Chains& kept = chains[slot_of_stride(stride)];
  kept.waiting.fetch_add(count, std::memory_order_relaxed);
  kept.needed.store(true, std::memory_order_relaxed);
  {
    const std::lock_guard lock(chain_lock);
    chain_push(kept, first, stride);
  }
  want_give_back();
}

std::uint32_t by_static_block_slot(std::size_t stride) noexcept {
  for (std::size_t i = 0; i < large_strides.size(); ++i) {
    std::uint32_t there = large_strides[i].load(std::memory_order_relaxed);
    if (there == 0 && large_strides[i].compare_exchange_strong(there, static_cast<std::uint32_t>(stride),
                                                               std::memory_order_relaxed)) {
      there = static_cast<std::uint32_t>(stride);
    }
    if (there == stride) {
      return static_cast<std::uint32_t>(first_large_slot + i);
    }
  }
  return 0;
}
}

void* static_chain_take(std::uint32_t slot) {
  Chains& kept = chains[slot];
  if (kept.first.load(std::memory_order_relaxed) == nullptr) {
    return nullptr;
  }
  kept.needed.store(true, std::memory_order_relaxed);
  const std::lock_guard lock(chain_lock);
  return chain_pop(kept, static_stride(slot));
}

bool free_stale_chains() {
  constexpr std::size_t blocks_at_a_time = 4096;  // what a fork meanwhile takes from the child
  bool any = false;
  for (std::uint32_t slot = 1; slot < slot_count; ++slot) {
    Chains& kept = chains[slot];
    if (kept.first.load(std::memory_order_relaxed) == nullptr) {
      continue;
    }
    any = true;
    if (kept.needed.exchange(false, std::memory_order_relaxed)) {
      continue;
    }
    const std::size_t stride = static_stride(slot);
    const std::int32_t mask = slab_mask_of(slab_shift_of(stride));
    while (!kept.needed.load(std::memory_order_relaxed)) {
      void* block = chain_pop(kept, stride);
      if (block == nullptr) {
        break;
      }
      void* rest = block;
      std::size_t count = 0;
      for (; rest != nullptr && count < blocks_at_a_time; ++count) {
        rest = chain_next(rest, stride);
      }
      if (rest != nullptr) {
        chain_push(kept, rest, stride);
      }
      while (block != rest) {
        void* const next = chain_next(block, stride);
        pool_free_remote(block, slab_of(block, mask));
        block = next;
      }
      static_chain_used(slot, count);
    }
  }
  return any;
}

void free_stale_chains_in_child() {
  for (Chains& kept : chains) {
    kept.turn.unlock();
  }
}

void static_chain_used(std::uint32_t slot, std::size_t count) {
  chains[slot].waiting.fetch_sub(count, std::memory_order_relaxed);
}

bool static_magazine_give(const Pool* pool, void* first) {
  constexpr std::size_t most_bytes = std::size_t{128} << 10;
  Chains& kept = chains[pool->slot];
  const std::size_t most =
      std::min(kept.magazines.size(), most_bytes / (std::size_t{pool->magazine_blocks} * pool->stride));
  if (kept.magazine_count.load(std::memory_order_relaxed) >= most) {
    return false;
  }
  const std::lock_guard lock(chain_lock);
  const std::size_t count = kept.magazine_count.load(std::memory_order_relaxed);
  if (count >= most) {
    return false;
  }
  kept.magazines[count] = first;
  kept.magazine_count.store(count + 1, std::memory_order_relaxed);
  return true;
}

void* static_magazine_take(std::uint32_t slot) {
  Chains& kept = chains[slot];
  if (kept.magazine_count.load(std::memory_order_relaxed) == 0) {
    return nullptr;
  }
  const std::lock_guard lock(chain_lock);
  const std::size_t count = kept.magazine_count.load(std::memory_order_relaxed);
  if (count == 0) {
    return nullptr;
  }
  kept.magazine_count.store(count - 1, std::memory_order_relaxed);
  return kept.magazines[count - 1];
}

bool static_adopt(Pool* pool) {
  constexpr unsigned pages_at_a_time = 4;
  if (registry.parked() == nullptr) {
    return false;
  }
  const std::lock_guard lock(parked_lock);
  for (ThreadPools* state = registry.parked(); state != nullptr; state = state->next_parked) {
    Pool* const from = state->pools[pool->slot].load(std::memory_order_relaxed);
    if (from != nullptr && pool_adopt(pool, from, pages_at_a_time) != 0) {
      return true;
    }
  }
  return false;
}

by_block_statistics static_slot_statistics(std::uint32_t slot, std::size_t stride) {
  by_block_statistics sum{};
  sum.block_bytes = stride;
  std::size_t live = 0;
  if (process_is_watched()) {
    const std::lock_guard lock(watched_lock);
    if (const Pool* const pool = watched[slot]; pool != nullptr) {
      pool_add_statistics(pool, &sum);
    }
    return sum;
  }
  std::ptrdiff_t from_chains = 0;
  for (const ThreadPools* state = registry.known(); state != nullptr; state = state->next_known) {
    if (const Pool* const pool = state->pools[slot].load(std::memory_order_acquire); pool != nullptr) {
      pool_add_held(pool, &sum);
      from_chains += static_cast<std::int32_t>(pool->chain_slab.excess);
    }
  }
  // By the table, not by the pools' lists, which their owners may change meanwhile.
  window_each_slab([&](Index index) {
    const BlockSlab& record = slab(index);
    const Pool* const pool = record.pool.load(std::memory_order_acquire);
    if (pool->thread != nullptr && pool->slot == slot) {
      live += slab_live(record) - RemoteList::count_of(granule(index).remote.load(std::memory_order_relaxed));
    }
  });
  const std::size_t waiting =
      chains[slot].waiting.load(std::memory_order_relaxed) - static_cast<std::size_t>(from_chains);
  sum.live_blocks = live > waiting ? live - waiting : 0;
  sum.live_bytes = sum.live_blocks * stride;
  return sum;
}

std::size_t static_stride(std::uint32_t slot) {
  return slot < first_large_slot ? slot * unit : large_strides[slot - first_large_slot].load(std::memory_order_relaxed);
}

bool static_slot_in_use(std::uint32_t slot) {
  if (watched[slot] != nullptr) {
    return true;
  }
  for (const ThreadPools* state = registry.known(); state != nullptr; state = state->next_known) {
    if (state->pools[slot].load(std::memory_order_acquire) != nullptr) {
      return true;
    }
  }
  return false;
}

bool static_invariants_hold() {
  const ThreadPools* const state = thread_blocks() == &no_blocks ? nullptr : static_cast<ThreadPools*>(thread_blocks());
  if (process_is_watched() || state == nullptr) {
    return true;
  }
  bool hold = true;
  for_each_pool(state, [&](const Pool* pool) { hold = hold && pool_invariants_hold(pool); });
  return hold;
}

}  // namespace blockyard::block

extern "C" {

void by_static_block_get_statistics(size_t stride, by_block_statistics* statistics) {
  using namespace blockyard::block;
  if (stride != 0) {
    *statistics = static_slot_statistics(slot_of_stride(stride), stride);
    return;
  }
  *statistics = {};
  for (std::uint32_t slot = 1; slot < slot_count; ++slot) {
    const std::size_t bytes = static_stride(slot);
    if (bytes == 0 || !static_slot_in_use(slot)) {
      continue;
    }
    add_statistics(*statistics, static_slot_statistics(slot, bytes));
  }
}

void by_static_block_trim(void) {
  using namespace blockyard::block;
  if (process_is_watched()) {
    return;
  }
  for (std::uint32_t slot = 1; slot < slot_count; ++slot) {
    free_chains(slot);
  }
  const std::lock_guard lock(parked_lock);
  const auto each_pool = [](auto&& work) {
    if (thread_blocks() != &no_blocks) {
      for_each_pool(static_cast<ThreadPools*>(thread_blocks()), work);
    }
    for (const ThreadPools* state = registry.parked(); state != nullptr; state = state->next_parked) {
      for_each_pool(state, work);
    }
  };
  each_pool(pool_free_chain_slab);  // before any is trimmed, since these blocks are of slabs of the others
  each_pool(pool_trim);
}
}
