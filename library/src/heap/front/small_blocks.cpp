#include "heap/front/small_blocks.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <utility>

#include "base/atomic.hpp"
#include "base/bound.hpp"
#include "base/index_list.hpp"
#include "base/remote_list.hpp"
#include "base/say.hpp"
#include "heap/front/hardening.hpp"
#include "heap/front/heap_table.hpp"
#include "heap/pages/page_allocator.hpp"
#include "heap/settings.hpp"
#include "heap/transfer/depot.hpp"

namespace blockyard::heap {

constinit Slab empty_slab{.notify = notify_never};
constinit ThreadHeap empty_heap{&empty_slab, no_heap};
constinit thread_local ThreadHeap* thread_heap __attribute__((tls_model("initial-exec"))) = &empty_heap;
constinit thread_local ThreadHeap* heap_behind_guard __attribute__((tls_model("initial-exec"))) = &empty_heap;

void ThreadHeap::extend_cache(unsigned size_class, std::uint32_t limit) {
  if (!is_extended(size_class) && limit > most_in_bin) {
    const std::uint32_t count = cached(size_class);
    copy_blocks(first_cached(size_class), &at(extended_position(size_class)), count);
    entries[size_class].last = static_cast<std::uint16_t>(extended_position(size_class));
    entries[size_class].second = static_cast<std::uint16_t>(position(size_class, count));
  }
  set_cache_limit(size_class, std::max(limit, cache_limit(size_class)));
}

void ThreadHeap::share_cache(unsigned size_class) {
  in_turn &= ~(std::uint32_t{1} << size_class);
  extend_cache(size_class, cache_capacity(size_class));
  set_cache_limit(size_class, cache_capacity(size_class));
}

void ThreadHeap::drop_oldest(unsigned size_class, std::uint32_t count) {
  const std::uint32_t held = cached(size_class);
  void** const first = oldest_cached(size_class, count);
  copy_blocks(first + count, first, static_cast<std::uint32_t>(first_cached(size_class) + held - first) - count);
  set_cached(size_class, entries[size_class].newest, held - count);
}

constinit std::uintptr_t link_key = 0;

namespace {

using RemoteList = base::RemoteList<StandardAtomics>;
using PendingStack = base::PendingStack<StandardAtomics>;

Slab& slab_at(std::uint32_t slice) { return region.slabs[slice]; }

std::uint32_t& list_of(ThreadHeap* heap, const Slab* slab) {
  return slab->state == SlabState::listed ? heap->waiting[slab->size_class].listed : heap->detached;
}

// Makes a slab without used blocks one that never handed out any: its blocks come densely and in order, and no link is
// read.
void reset(ThreadHeap* heap, Slab* slab) {
  // No key comes twice: a block that was free may be handed out with its link, and freed as it is.
  slab->key = link_key + (std::uint64_t{heap->index} << 48 | ++heap->slabs_begun) * 0xD1B54A32D192ED03u;
  slab->bump = region.slice_address(index_of(slab));
  slab->limit = slab->bump + std::size_t{slab->capacity} * slab->block_bytes;
  slab->free = slab->limit;
  slab->used = 0;
}

// A program of more threads than this is no game: the others' slabs, before a class is in heavy use, are populated by
// the page, as blocks are cut from them. A thousand threads that each use a few classes would hold half a gigabyte.
constexpr std::uint32_t heaps_with_whole_slabs = 64;

Slab* fresh_slab(ThreadHeap* heap, unsigned size_class) {
  std::uint32_t slices = next_slices(size_class, heap->waiting[size_class].slices);
  std::uint32_t slice =
      heap->index > heaps_with_whole_slabs && heap->waiting[size_class].slices < held_before_long_slabs
          ? page_allocator.take_bare_slab(slices)
          : 0;
  const bool bare = slice != 0;
  if (!bare) {
    slice = page_allocator.take_slab(slices);
  }
  if (slice == 0) {
    slices = next_slices(size_class, 0);  // at the memory limit a shorter one may be left
    slice = page_allocator.take_slab(slices);
    if (slice == 0) {
      return nullptr;
    }
  }
  for (std::uint32_t part = 0; part < slices; ++part) {
    region.owners[slice + part].store(Owner(heap->index, size_class, part, heap->is_arena).word(),
                                      std::memory_order_relaxed);
    region.class_map[slice + part].store(heap->is_arena || settings.guard ? 0 : CacheSlot::of_class(size_class).byte(),
                                         std::memory_order_relaxed);
  }
  Slab* const slab = &region.slabs[slice];
  const std::uint32_t bytes = class_bytes(size_class);
  slab->capacity = static_cast<std::uint32_t>(slices * slice_bytes / bytes);
  slab->slices = static_cast<std::uint8_t>(slices);
  slab->populated = !bare && page_allocator.populates_on_a_miss();
  slab->block_bytes = bytes;
  slab->inverse = class_inverse(size_class);
  slab->size_class = static_cast<std::uint8_t>(size_class);
  reset(heap, slab);
  ++heap->slabs;
  heap->waiting[size_class].slices += slices;
  return slab;
}

// Takes a slab out of the list in which it stands.
void unlink(ThreadHeap* heap, Slab* slab) { base::list_remove(list_of(heap, slab), index_of(slab), slab_at); }

// Puts a slab that stands in no list into the one of `state`: listed or detached.
void link(ThreadHeap* heap, Slab* slab, SlabState state) {
  slab->state = state;
  slab->notify = state == SlabState::listed ? 0 : slab->capacity - 1;
  base::list_push(list_of(heap, slab), index_of(slab), slab_at);
}

// Gives a listed slab without used blocks back, unless no other of its class is listed: a program that goes to and fro
// at a slab's edge would otherwise take and give one back each time.
void retire_unless_last(ThreadHeap* heap, Slab* slab) {
  if (slab->next != 0 || slab->previous != 0) {
    retire(heap, slab);
  }
}

// A slab with room for the class, in no list: a listed one, or a fresh one. Null when memory is exhausted.
Slab* next_slab(ThreadHeap* heap, unsigned size_class) {
  const std::uint32_t listed = heap->waiting[size_class].listed;
  if (listed == 0) {
    return fresh_slab(heap, size_class);
  }
  Slab* const slab = &region.slabs[listed];
  unlink(heap, slab);
  if (slab->used == 0) {
    reset(heap, slab);
  }
  return slab;
}

// From here on the heap allocates from `slab`, which has handed out none of its blocks or each at least once. Unused
// blocks are the bin's to give, all at once: they count as used, so that giving one does not touch the slab.
void make_current(Bin& bin, Slab* slab) {
#if BLOCKYARD_CHECKED
  const bool untouched =
      slab->used == 0 && slab->free == slab->limit && slab->bump == region.slice_address(index_of(slab));
  if (bin.left != 0 || (slab->bump != slab->limit && !untouched)) {
    base::say("blockyard: the heap itself is broken: a slab in use has blocks that were never handed out\n");
    std::abort();
  }
#endif
  slab->state = SlabState::current;
  slab->notify = notify_never;
  bin.current = slab;
  bin.bump = slab->bump;
  bin.left = slab->bump != slab->limit ? slab->capacity : 0;
  slab->used += bin.left;
  slab->bump = slab->limit;
}

// What follows a block of `free` that another thread freed, as the owner's links have it; or the report that the block
// holds no link.
[[gnu::noinline]] std::uintptr_t link_of_another_thread(const Slab* slab, const void* block) {
  const std::uintptr_t next = decoded(block, link_key);
  if (next == 0) {
    return reinterpret_cast<std::uintptr_t>(slab->limit);
  }
  if (check_links && !is_link(slab, next)) {
    report_written_after_free(block);
  }
  return next;
}

// A freed block out of the slab, or null. The caller counts it.
[[gnu::always_inline]] inline void* take_freed(Slab* slab) {
  void* const block = slab->free;
  if (block == slab->limit) {
    return nullptr;
  }
  std::uintptr_t next = decoded(block, slab->key);
  if (!is_link(slab, next)) [[unlikely]] {
    next = link_of_another_thread(slab, block);
  }
  take_first_freed(slab, next);
  return block;
}

// Puts remote frees that were just taken from a slab's list into the slab. What was free comes behind the last of them.
void adopt(ThreadHeap* heap, std::uint32_t slice, const base::RemoteBatch& batch) {
  Slab* const slab = &region.slabs[slice];
  char* const base = region.slice_address(slice);
  if (slab->free != slab->limit) {
    write_link(base + (std::size_t{batch.last} - 1) * block_alignment, slab->free, link_key);
  }
  slab->free = base + (std::size_t{batch.first} - 1) * block_alignment;
  slab->used -= batch.count;
  heap->remote_adopted += batch.count;
  const SlabState state = slab->state;
  if (state == SlabState::current) {
    return;
  }
  if (state == SlabState::detached) {
    unlink(heap, slab);
    link(heap, slab, SlabState::listed);
  }
  if (slab->used == 0) {
    retire_unless_last(heap, slab);
  }
}

[[gnu::always_inline]] inline bool push_to_owner(void* block, unsigned* size_class) {
  const auto slice = static_cast<std::uint32_t>(region.slice_of(block));
  const Owner slab_owner = region.owner_of(slice);
  if (size_class != nullptr) {
    *size_class = slab_owner.size_class();
  }
  const std::uint32_t first = slice - slab_owner.back();
  RemoteFrees& entry = region.remote_frees[first];
  char* const base = region.slice_address(first);
  const auto distance = static_cast<std::uint32_t>(static_cast<char*>(block) - base);
  if (check_begin && !is_multiple(distance, class_inverse(slab_owner.size_class()))) [[unlikely]] {
    report_inside(block);
  }
  const auto unit = static_cast<std::uint32_t>(distance / block_alignment + 1);
  // The owner was read before the push: afterwards the slab may be adopted, emptied and given away at any time.
  ThreadHeap* const owner = process_heaps.at(slab_owner.heap());
  const bool announce = RemoteList::push(entry.remote, entry.oldest, unit, [&](std::uint32_t next) {
    void* const link = next == 0 ? nullptr : base + (std::size_t{next} - 1) * block_alignment;
    write_link(block, link, link_key);
  });
  if (announce) {
    PendingStack::push(owner->pending, first, entry.pending_next);
  }
  return announce;
}

// Lists of remote frees adopted on a slow path. With one, announcements of other size classes come faster than they are
// taken (tests/heap/freed_by_another_thread).
constexpr std::uint32_t adopted_a_slow_path = 2;

// While threads miss a class and only the depot is full, one block fewer is cached with every eighth free: old and new
// frees mostly keep apart, and a freed level still leaves few.
constexpr std::uint32_t frees_a_block_less = 8;

// A thread that only frees what others allocated takes a heap too, to hand blocks over, but not for the few that a
// thread may free at its very end.
constexpr std::uint8_t frees_before_heap = 32;
constinit thread_local std::uint8_t frees_without_heap __attribute__((tls_model("initial-exec"))) = 0;

std::uint16_t tick_now() { return page_allocator.tick.load(std::memory_order_relaxed); }

// Keeps `less` fewer blocks of a class cached, until an allocation finds neither a cached one nor the bump pointer:
// called where frees come on frees, so that they emptied a slab. Who frees a level in no order would otherwise be left
// with the last ones of each class, each in a slab that holds nothing else.
[[gnu::noinline]] void trim_cache(ThreadHeap* heap, unsigned size_class, std::uint32_t less) {
  const std::uint32_t limit = heap->cache_limit(size_class);
  heap->lower_cache_limit(size_class, limit - std::min(less, limit));
  if (heap->cached(size_class) > most_cached) {
    return;  // free_past_turn gives them back, one with each free
  }
  // A block given back may empty its slab and come here again, with fewer still: 60 deep at most.
  base::Bound trimmed("cached blocks trimmed", most_cached);
  while (heap->is_beyond_limit(size_class)) {
    trimmed.turn();
    free_to_any_slab(heap, heap->take_cached(CacheSlot::of_class(size_class)));
  }
}

// What free_to_slab does when a slab's `used` fell to `notify`. The block is in the slab's list already.
[[gnu::noinline]] void slab_has_changed(ThreadHeap* heap, Slab* slab) {
  if (slab->state == SlabState::detached) {
    unlink(heap, slab);
    link(heap, slab, SlabState::listed);
  } else {
    const unsigned size_class = slab->size_class;
    retire_unless_last(heap, slab);
    trim_cache(heap, size_class, 5);
  }
}

// Puts a block back into its slab, the owner's thread only.
[[gnu::always_inline]] inline void free_to_slab(ThreadHeap* heap, void* block, Slab* slab) {
  const auto to_limit = static_cast<std::uint32_t>(slab->limit - static_cast<char*>(block));
  if (check_begin && !is_multiple(to_limit, slab->inverse)) [[unlikely]] {
    report_inside(block);
  }
  if (check_links && has_link(slab, block)) [[unlikely]] {
    report_freed_twice(block);
  }
  write_link(block, slab->free, slab->key);
  slab->free = block;
  if (--slab->used == slab->notify) [[unlikely]] {
    slab_has_changed(heap, slab);
  }
}

// Puts another thread's block back into its slab; null: does nothing. Where that is the first since the owner last
// adopted from it, more are likely.
[[gnu::noinline]] void free_to_other(ThreadHeap* heap, void* block) {
  unsigned size_class = 0;
  if (block != nullptr && push_to_owner(block, &size_class)) {
    trim_cache(heap, size_class, 2);
  }
}

// Puts a block into the deferred-free buffer; the oldest there goes back into its slab.
[[gnu::always_inline]] inline void defer_free(ThreadHeap* heap, void* block, Slab* slab) {
  auto& deferred = heap->deferred;
  static_assert(most_deferred == 8);  // in a loop it would be a call of memmove
  const DeferredFree oldest = deferred[0];
  deferred[0] = deferred[1];
  deferred[1] = deferred[2];
  deferred[2] = deferred[3];
  deferred[3] = deferred[4];
  deferred[4] = deferred[5];
  deferred[5] = deferred[6];
  deferred[6] = deferred[7];
  using Whole = std::uintptr_t __attribute__((vector_size(sizeof(DeferredFree))));
  const Whole newest{reinterpret_cast<std::uintptr_t>(block), reinterpret_cast<std::uintptr_t>(slab)};
  deferred[most_deferred - 1] = std::bit_cast<DeferredFree>(newest);
  if (oldest.slab != nullptr) [[likely]] {
    free_to_slab(heap, oldest.block, oldest.slab);
  } else {
    free_to_other(heap, oldest.block);
  }
}

// Takes blocks that other threads freed, when none is cached: one to hand out, the others to cache. Null: none wait.
void* take_handed_over(ThreadHeap* heap, unsigned size_class) {
  if (size_class >= depot_classes || heap->is_arena) {
    return nullptr;
  }
  void* block = nullptr;
  process_depot.take(size_class, tick_now(), [&](const Depot::Magazine& magazine) {
    heap->cache_magazine(size_class, magazine.blocks.data(), magazine_blocks(size_class));
    block = magazine.blocks[0];
  });
  return block;
}

// Hands the older half of the cached blocks over to a thread that wants some of the class, and caches `block`. False:
// nobody does, or enough wait already.
bool hand_over(ThreadHeap* heap, void* block, unsigned size_class) {
  if (size_class >= depot_classes) {
    return false;
  }
  const std::uint16_t tick = tick_now();
  if (heap->cached(size_class) < cache_capacity(size_class)) {  // the cache was trimmed
    if (!process_depot.has_room(size_class, tick)) {
      return false;
    }
    heap->share_cache(size_class);
  } else {
    const std::uint32_t count = magazine_blocks(size_class);
    void** const given = heap->oldest_cached(size_class, count);
    if (!process_depot.give(size_class, tick,
                            [&](Depot::Magazine& magazine) { copy_blocks(given, magazine.blocks.data(), count); })) {
      return false;
    }
    heap->drop_oldest(size_class, count);
    heap->share_cache(size_class);
  }
  heap->cache(CacheSlot::of_class(size_class), block);
  return true;
}

void defer_remote_free(ThreadHeap* heap, void* block) {
  const std::size_t slice = region.slice_of(block);
  // The exchange that publishes the block waits until its link is written: that line is wanted too.
  prefetch_to_write(&region.remote_frees[slice - region.owner_of(slice).back()]);
  prefetch_to_write(block);
  defer_free(heap, block, nullptr);
}

void defer_to_any_slab(ThreadHeap* heap, void* block) {
  const std::size_t slice = region.slice_of(block);
  const Owner owner = region.owner_of(slice);
  if (owner.heap() != heap->index) {
    defer_remote_free(heap, block);
    return;
  }
  Slab* const slab = &region.slabs[slice - owner.back()];
  prefetch_to_write(slab);
  prefetch_to_write(block);
  defer_free(heap, block, slab);
}

void free_without_heap(void* block) {
  if (frees_without_heap < frees_before_heap) {
    ++frees_without_heap;
  } else if (!HeapTable::thread_has_left()) {
    process_heaps.enter_thread();
  }
  free_remote(block);
}

// An allocation found nothing cached: as many may be cached as ever in the bin, and where frees in a row before it
// found no room, those too, so that the next such turn needs no slab. Not where threads hand blocks of the class to one
// another, nor where even the most would not hold them.
[[gnu::noinline]] void raise_cache_limit(ThreadHeap* heap, unsigned size_class) {
  const std::uint32_t past = std::exchange(heap->past(size_class), std::uint16_t{0});
  const std::uint32_t least = first_cache_limit(size_class);
  const std::uint32_t limit = std::max(heap->cache_limit(size_class), least);
  const bool is_in_turn = (heap->in_turn >> size_class & 1) != 0;
  if (size_class < depot_classes && past >= least_turn && limit + past <= capacity_in_turn(size_class) &&
      (is_in_turn || !heap->is_extended(size_class))) {
    heap->extend_cache(size_class, limit + past);
    heap->in_turn |= std::uint32_t{1} << size_class;
  } else if (limit == least && is_in_turn) {
    heap->reset_cache(size_class);
  } else {
    heap->set_cache_limit(size_class, limit);
  }
}

// The rest of refill_and_take: the current slab has no block that was freed.
[[gnu::noinline]] void* take_from_next_slab(ThreadHeap* heap, unsigned size_class) {
  Bin& bin = heap->bins[size_class];
  // What comes now is seldom, its lines are cold, and between one and the next stands an atomic operation.
  prefetch_to_write(&heap->pending);
  // Where none is listed, a line that is here: null would cost a walk of the page table.
  const std::uint32_t listed = heap->waiting[size_class].listed;
  prefetch_to_write(listed != 0 ? static_cast<void*>(&region.slabs[listed]) : &bin);
  process_depot.prefetch(size_class);
  if (void* const block = take_handed_over(heap, size_class); block != nullptr) {
    return block;
  }
  adopt_pending(heap, adopted_a_slow_path);
  void* block = take_freed(bin.current);
  if (block == nullptr) {
    if (bin.current != &empty_slab) {
      link(heap, bin.current, SlabState::detached);
      bin.current = &empty_slab;
    }
    Slab* const slab = next_slab(heap, size_class);
    if (slab == nullptr) {
      return nullptr;
    }
    make_current(bin, slab);
    if (bin.left != 0) {
      return from_cache(heap, CacheSlot::of_class(size_class));
    }
    block = take_freed(slab);
  }
  ++bin.current->used;
  return block;
}

// Frees a block of the heap's own for which not even the cache of a class freed and allocated in turn has room. That
// holds one fewer from now on: who frees a level would be left with them, each in a slab that holds nothing else. O(1).
[[gnu::noinline]] void free_past_turn(ThreadHeap* heap, void* block, unsigned size_class) {
  const std::uint32_t least = first_cache_limit(size_class);
  if (heap->cached(size_class) > least) {
    heap->set_cache_limit(size_class, std::max(heap->cache_limit(size_class), least + 1) - 1);
    ++heap->past(size_class);
    defer_to_any_slab(heap, heap->take_cached(CacheSlot::of_class(size_class)));
  }
  ++heap->past(size_class);
  defer_to_any_slab(heap, block);
}

// Frees another thread's block for which the cache has no room: by way of the depot where threads miss its
// class, else by way of the deferred-free buffer. O(1). `heap` may be the empty one, which never has room.
//
// Of another thread's blocks that nobody takes, fewer are cached each time, until an allocation finds none: who frees
// another's level would be left with the last of each class, most of them alone in a slab.
[[gnu::noinline]] void free_other_past_cache(ThreadHeap* heap, void* block, unsigned size_class) {
  if (heap == &empty_heap) {  // which nobody may write
    free_without_heap(block);
    return;
  }
  // What comes now is seldom and its lines are cold: prefetched at once, before any of them is waited for. Two blocks
  // at most go back into their slabs here; their lines came eight such frees ago and may be gone again.
  process_depot.prefetch_to_give(size_class);
  __builtin_prefetch(&page_allocator.tick);
  for (unsigned each = 0; each < 2; ++each) {
    if (const DeferredFree& next = heap->deferred[each]; next.slab != nullptr) {
      prefetch_to_write(next.block);
      prefetch_to_write(next.slab);
    }
  }
  if (hand_over(heap, block, size_class)) {
    return;
  }
  const bool missed = size_class < depot_classes && process_depot.is_missed(size_class, tick_now());
  if (const std::uint32_t limit = heap->cache_limit(size_class);
      limit != 0 && (!missed || heap->frees_while_missed++ % frees_a_block_less == 0)) {
    heap->lower_cache_limit(size_class, limit - 1);
    defer_remote_free(heap, heap->take_cached(CacheSlot::of_class(size_class)));
  }
  defer_remote_free(heap, block);
}

}  // namespace

void retire(ThreadHeap* heap, Slab* slab) {
  if (slab->state != SlabState::current) {
    unlink(heap, slab);
  }
  const std::uint32_t slice = index_of(slab);
  const std::uint32_t slices = slab->slices;
  slab->state = SlabState::none;
  for (std::uint32_t part = 0; part < slices; ++part) {
    region.owners[slice + part].store(0, std::memory_order_relaxed);
    region.class_map[slice + part].store(0, std::memory_order_relaxed);
  }
  region.remote_frees[slice].remote.store(0, std::memory_order_relaxed);
  --heap->slabs;
  heap->waiting[slab->size_class].slices -= slices;
  page_allocator.give_slab(slice, slices, slab_at(slice).populated);
}

std::uint32_t adopt_pending(ThreadHeap* heap, std::uint32_t most) {
  // Two at a time, both lists taken before either is read: an exchange waits until every store before it has got its
  // line, and what an adoption writes is cold.
  struct Taken {
    std::uint32_t slice;
    base::RemoteBatch batch;
  };
  std::array<Taken, 2> taken;
  std::uint32_t adopted = 0;
  std::uint32_t some = 0;
  base::Bound lists("lists of remote frees adopted", most);
  do {
    for (some = 0; some < taken.size() && adopted + some < most; ++some) {
      if (heap->taken == 0) {
        heap->taken = PendingStack::take(heap->pending);
        if (heap->taken == 0) {
          break;
        }
      }
      lists.turn();
      const std::uint32_t slice = heap->taken;
      RemoteFrees& entry = region.remote_frees[slice];
      prefetch_to_write(&region.slabs[slice]);
      heap->taken = entry.pending_next.load(std::memory_order_relaxed);
      taken[some] = {slice, RemoteList::adopt(entry.remote, entry.oldest)};
    }
    for (std::uint32_t each = 0; each < some; ++each) {
      adopt(heap, taken[each].slice, taken[each].batch);
    }
    adopted += some;
  } while (some == taken.size() && adopted < most);
  return adopted;
}

bool free_remote(void* block, unsigned* size_class) { return push_to_owner(block, size_class); }

void* refill_and_take(ThreadHeap* heap, unsigned size_class) {
  if (heap == &empty_heap) [[unlikely]] {
    if (HeapTable::only_lends(size_class)) {
      return process_heaps.lend(tick_now(), [=](ThreadHeap* lent) {
        void* const block = from_cache(lent, CacheSlot::of_class(size_class));
        return block != nullptr ? block : refill_and_take(lent, size_class);
      });
    }
    heap = process_heaps.enter_thread();
    if (heap == nullptr) {
      return nullptr;
    }
    // A heap that another thread left has blocks of its own to give.
    if (void* const block = from_cache(heap, CacheSlot::of_class(size_class)); block != nullptr) {
      return block;
    }
  }
  if (heap->past(size_class) != 0) [[unlikely]] {
    raise_cache_limit(heap, size_class);
  }
  Slab* const current = heap->bins[size_class].current;
  if (void* const block = take_freed(current); block != nullptr) [[likely]] {
    ++current->used;
    return block;
  }
  return take_from_next_slab(heap, size_class);
}

void free_to_any_slab(ThreadHeap* heap, void* block) {
  const std::size_t slice = region.slice_of(block);
  const Owner owner = region.owner_of(slice);
  if (owner.heap() == heap->index) {
    free_to_slab(heap, block, &region.slabs[slice - owner.back()]);
  } else {
    free_to_other(heap, block);
  }
}

void free_perhaps_again(ThreadHeap* heap, void* block, CacheSlot slot) {
  if (heap->newest(slot.size_class()) == block || heap->cached(slot.size_class()) >= 2) {
    report_freed_twice(block);
  }
  if (heap->has_room_in_cache(slot.size_class())) {
    heap->cache(slot, block);
  } else {
    free_past_cache(heap, block);
  }
}

void free_inside(const void* block) { report_inside(block); }

void free_past_cache(ThreadHeap* heap, void* block) {
  if (check_last_freed && heap->deferred[most_deferred - 1].block == block) [[unlikely]] {
    report_freed_twice(block);
  }
  const std::size_t slice = region.slice_of(block);
  const Owner owner = region.owner_of(slice);
  if (owner.heap() != heap->index) [[unlikely]] {
    free_other_past_cache(heap, block, owner.size_class());
    return;
  }
  if ((heap->in_turn >> owner.size_class() & 1) != 0) [[unlikely]] {
    free_past_turn(heap, block, owner.size_class());
    return;
  }
  ++heap->past(owner.size_class());
  Slab* const slab = &region.slabs[slice - owner.back()];
  prefetch_to_write(slab);
  if (check_links) {
    prefetch_to_write(block);  // which is read when it goes back into the slab
  }
  defer_free(heap, block, slab);
}

}  // namespace blockyard::heap
