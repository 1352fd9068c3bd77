#include "heap/thread_heap.hpp"

#include <algorithm>
#include <utility>

#include "heap/bound.hpp"
#include "heap/page_heap.hpp"
#include "heap/pending_stack.hpp"
#include "heap/process_heap.hpp"
#include "heap/remote_list.hpp"

namespace blockyard::heap {

constinit Slab empty_slab{.notify = notify_never};
constinit ThreadHeap empty_heap{&empty_slab, no_heap};
constinit thread_local ThreadHeap* thread_heap __attribute__((tls_model("initial-exec"))) = &empty_heap;
constinit std::uintptr_t link_key = 0;

namespace {

// Lists of remote frees adopted a slow path. With one, announcements of other size classes come faster than they are
// taken, and a producer whose blocks another thread frees held 7.5 MB for 0.27 MB live; with two 0.75 MB, with four no
// less (tests/heap/freed_by_another_thread). An adoption is O(1).
constexpr std::uint32_t adopted_a_slow_path = 2;

std::uint32_t& list_of(ThreadHeap* heap, const Slab* slab, SlabState state) {
  return state == SlabState::listed ? heap->waiting[slab->size_class].listed : heap->detached;
}

// Puts a slab that stands in no list into the one of `state`: listed or detached.
void link(ThreadHeap* heap, Slab* slab, SlabState state) {
  std::uint32_t& head = list_of(heap, slab, state);
  slab->state = static_cast<std::uint8_t>(state);
  slab->notify = state == SlabState::listed ? 0 : slab->capacity - 1;
  slab->previous = 0;
  slab->next = head;
  if (head != 0) {
    region.slabs[head].previous = index_of(slab);
  }
  head = index_of(slab);
}

void unlink(ThreadHeap* heap, Slab* slab) {
  if (slab->previous != 0) {
    region.slabs[slab->previous].next = slab->next;
  } else {
    list_of(heap, slab, static_cast<SlabState>(slab->state)) = slab->next;
  }
  if (slab->next != 0) {
    region.slabs[slab->next].previous = slab->previous;
  }
}

// Gives a slab without used blocks back to the process.
void retire(ThreadHeap* heap, Slab* slab) {
  const std::uint32_t granule = index_of(slab);
  const std::uint32_t granules = slab->granules;
  slab->postponed = 0;
  slab->state = static_cast<std::uint8_t>(SlabState::none);
  Bound<most_granules> parts("a slab has more granules than the stated bound");
  for (std::uint32_t part = 0; part < granules; ++part) {
    parts.turn();
    region.owners[granule + part].store(0, std::memory_order_relaxed);
  }
  region.directory[granule].remote.store(0, std::memory_order_relaxed);
  --heap->slabs;
  heap->waiting[slab->size_class].granules -= granules;
  process_heap.give_slab(granule, granules);
}

// Makes a slab without used blocks one that never gave any: its blocks come densely and in order, and no link is read.
void begin_anew(Slab* slab) {
  slab->free = slab->adopted = nullptr;
  slab->bump = region.granule_address(index_of(slab));
  slab->limit = slab->bump + std::size_t{slab->capacity} * slab->block_bytes;
  slab->used = 0;
}

Slab* fresh_slab(ThreadHeap* heap, unsigned size_class) {
  const std::uint32_t granules = next_granules(size_class, heap->waiting[size_class].granules);
  const std::uint32_t granule = process_heap.take_slab(granules);
  if (granule == 0) {
    return nullptr;
  }
  Bound<most_granules> parts("a slab has more granules than the stated bound");
  for (std::uint32_t part = 0; part < granules; ++part) {
    parts.turn();
    region.owners[granule + part].store(Owner(heap->index, size_class, part, heap->own).word(),
                                        std::memory_order_relaxed);
  }
  Slab* const slab = &region.slabs[granule];
  const std::uint32_t bytes = class_bytes(size_class);
  const auto capacity = static_cast<std::uint32_t>(granules * granule_bytes / bytes);
  slab->capacity = capacity;
  slab->granules = static_cast<std::uint8_t>(granules);
  slab->block_bytes = bytes;
  slab->size_class = static_cast<std::uint8_t>(size_class);
  begin_anew(slab);
  ++heap->slabs;
  heap->waiting[size_class].granules += granules;
  return slab;
}

// Gives a listed slab without used blocks back, unless no other of its class waits: a program that goes to and fro at a
// slab's edge would otherwise take and give one back each time.
void retire_unless_last(ThreadHeap* heap, Slab* slab) {
  if (slab->next != 0 || slab->previous != 0) {
    unlink(heap, slab);
    retire(heap, slab);
  }
}

// Takes a slab's remote frees back in O(1): the chain becomes whichever of its two lists is empty. Where neither is,
// the chain waits (`postponed`): its announcement has been taken, so nobody announces it again, and take_freed() adopts
// it when a list has run out.
bool adopt_chain(ThreadHeap* heap, Slab* slab, std::uint32_t granule) {
  void** const place = slab->free == nullptr ? &slab->free : slab->adopted == nullptr ? &slab->adopted : nullptr;
  if (place == nullptr) {
    slab->postponed = 1;
    return false;
  }
  slab->postponed = 0;
  const RemoteBatch batch = RemoteList<>::adopt(region.directory[granule].remote);
  *place = region.granule_address(granule) + (std::size_t{batch.first} - 1) * block_alignment;
  slab->used -= batch.count;
  heap->remote_adopted += batch.count;
  return true;
}

void adopt(ThreadHeap* heap, std::uint32_t granule) {
  Slab* const slab = &region.slabs[granule];
  if (!adopt_chain(heap, slab, granule)) {
    return;
  }
  const auto state = static_cast<SlabState>(slab->state);
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

// A freed block of the slab, or null. The caller counts it.
void* take_freed(ThreadHeap* heap, Slab* slab) {
  // Not for the empty slab, which all threads share and nobody may write.
  if (slab->free == nullptr && slab->adopted != nullptr) {
    slab->free = slab->adopted;
    slab->adopted = nullptr;
    if (slab->postponed != 0) {
      adopt_chain(heap, slab, index_of(slab));
    }
  }
  void* const block = slab->free;
  if (block != nullptr) {
    void* const next = encoded(*static_cast<void**>(block));
    if (check_links && next != nullptr && region.granule_of(next) - index_of(slab) >= slab->granules) [[unlikely]] {
      report_written_after_free(block);
    }
    slab->free = next;
    // The next of these calls reads its link out of the next block: let the line come until then. Where there is none,
    // one that is here already: a look at page 0 would cost a walk of the page table each time.
    __builtin_prefetch(next != nullptr ? next : slab);
  }
  return block;
}

// A slab with room for the class, in no list: one that waits, or a fresh one. Null when memory is exhausted.
Slab* next_slab(ThreadHeap* heap, unsigned size_class) {
  const std::uint32_t waiting = heap->waiting[size_class].listed;
  if (waiting == 0) {
    return fresh_slab(heap, size_class);
  }
  Slab* const slab = &region.slabs[waiting];
  unlink(heap, slab);
  if (slab->used == 0) {
    begin_anew(slab);
  }
  return slab;
}

// From here on the heap allocates from `slab`. Blocks never handed out are the bin's to give: they count as used at
// once, so that giving one does not touch the slab.
void make_current(Bin& bin, Slab* slab) {
  slab->state = static_cast<std::uint8_t>(SlabState::current);
  slab->notify = notify_never;
  bin.current = slab;
  bin.bump = slab->bump;
  bin.left = slab->bump != slab->limit ? slab->capacity : 0;
  slab->used += bin.left;
  slab->bump = slab->limit;
}

}  // namespace

std::uint32_t adopt_pending(ThreadHeap* heap, std::uint32_t most) {
  std::uint32_t adopted = 0;
  while (adopted < most) {
    if (heap->taken == 0) {
      heap->taken = PendingStack<>::take(heap->pending);
      if (heap->taken == 0) {
        break;
      }
    }
    const std::uint32_t granule = heap->taken;
    // Read before adopting: from then on another thread may announce the slab again and write the link.
    heap->taken = region.directory[granule].pending_next.load(std::memory_order_relaxed);
    adopt(heap, granule);
    ++adopted;
  }
  return adopted;
}

void* allocate_slow(ThreadHeap* heap, unsigned size_class) {
  if (heap == &empty_heap) {
    heap = process_heap.enter_thread();
    if (heap == nullptr) {
      return nullptr;
    }
    // A heap that another thread left has blocks of its own to give.
    if (void* const block = allocate_small(heap, size_class); block != nullptr) {
      return block;
    }
  }
  heap->most[size_class] = static_cast<std::uint8_t>(at_hand_capacity(size_class));
  Bin& bin = heap->bins[size_class];
  void* block = take_freed(heap, bin.current);
  if (block == nullptr) {
    adopt_pending(heap, adopted_a_slow_path);
    block = take_freed(heap, bin.current);
  }
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
      return allocate_small(heap, size_class);
    }
    block = take_freed(heap, slab);
  }
  ++bin.current->used;
  heap->last_freed = nullptr;
  return block;
}

void free_slow(ThreadHeap* heap, Slab* slab) {
  if (static_cast<SlabState>(slab->state) == SlabState::detached) {
    unlink(heap, slab);
    link(heap, slab, SlabState::listed);
  } else {
    const unsigned size_class = slab->size_class;
    retire_unless_last(heap, slab);
    shed_blocks(heap, size_class, 2);
  }
}

namespace {

void free_to_any_slab(ThreadHeap* heap, void* block) {
  const std::size_t granule = region.granule_of(block);
  const Owner owner = region.owner_of(granule);
  if (owner.heap() == heap->index) {
    free_to_slab(heap, block, &region.slabs[granule - owner.back()]);
  } else {
    free_remote(heap, block, static_cast<std::uint32_t>(granule));
  }
}

}  // namespace

void return_block(ThreadHeap* heap, void* block) {
  const std::size_t granule = region.granule_of(block);
  const Owner owner = region.owner_of(granule);
  const std::size_t first = granule - owner.back();
  if (owner.heap() == heap->index) {
    __builtin_prefetch(&region.slabs[first], 1);
  } else {
    // The exchange that publishes the block waits until its link is written: that line is wanted too.
    __builtin_prefetch(&region.directory[first], 1);
    __builtin_prefetch(block, 1);
  }
  void*& place = heap->returning[heap->oldest];
  void* const oldest = std::exchange(place, block);
  heap->oldest = (heap->oldest + 1) % most_returning;
  if (oldest != nullptr) [[likely]] {
    free_to_any_slab(heap, oldest);
  }
}

void shed_blocks(ThreadHeap* heap, unsigned size_class, std::uint32_t less) {
  std::uint8_t& most = heap->most[size_class];
  most = static_cast<std::uint8_t>(most - (most < less ? most : less));
  // A block given back may empty its slab and come here again, with fewer still: twelve deep at most.
  while (heap->newest[size_class] > most) {
    heap->last_freed = nullptr;  // whoever owns its slab may hand it out, and it may be freed here again
    free_to_any_slab(heap, heap->bins[size_class].at_hand[heap->newest[size_class]--]);
  }
}

void settle(ThreadHeap* heap) {
  heap->last_freed = nullptr;  // from here on whoever owns its slab may hand it out, and it may be freed here again
  for (void*& place : heap->returning) {
    if (void* const block = std::exchange(place, nullptr); block != nullptr) {
      free_to_any_slab(heap, block);
    }
  }
  for (void*& place : heap->runs) {
    if (void* const block = std::exchange(place, nullptr); block != nullptr) {
      region.pages[region.page_of(block)].flags &= static_cast<std::uint8_t>(~page_kept);
      process_heap.free_pages(block);
    }
  }
  for (unsigned size_class = 0; size_class < class_count; ++size_class) {
    Bin& bin = heap->bins[size_class];
    while (heap->newest[size_class] != 0) {
      free_to_any_slab(heap, bin.at_hand[heap->newest[size_class]--]);
    }
    heap->most[size_class] = static_cast<std::uint8_t>(at_hand_capacity(size_class));
    // Of a current slab those never handed out count as used.
    if (bin.current != &empty_slab && bin.current->used == bin.left) {
      retire(heap, bin.current);
      bin.current = &empty_slab;
      bin.left = 0;
    }
    std::uint32_t& listed = heap->waiting[size_class].listed;
    while (listed != 0 && region.slabs[listed].used == 0) {
      Slab* const slab = &region.slabs[listed];
      unlink(heap, slab);
      retire(heap, slab);
    }
  }
}

void free_remote(ThreadHeap* heap, void* block, std::uint32_t granule) {
  const Owner slab_owner = region.owner_of(granule);
  const std::uint32_t first = granule - slab_owner.back();
  Directory& entry = region.directory[first];
  char* const base = region.granule_address(first);
  const auto unit =
      static_cast<std::uint32_t>((static_cast<char*>(block) - base) / static_cast<std::ptrdiff_t>(block_alignment)) + 1;
  // The owner was read before the push: afterwards the slab may be adopted, emptied and given away at any time.
  ThreadHeap* const owner = process_heap.heap_at(slab_owner.heap());
  const bool announce = RemoteList<>::push(entry.remote, unit, [&](std::uint32_t next) {
    void* const link = next == 0 ? nullptr : base + (std::size_t{next} - 1) * block_alignment;
    *static_cast<void**>(block) = encoded(link);
  });
  if (announce) {
    PendingStack<>::push(owner->pending, first, entry.pending_next);
    if (heap != nullptr) {
      shed_blocks(heap, slab_owner.size_class(), 1);
    }
  }
}

void retire_all(ThreadHeap* heap) {
  for (unsigned size_class = 0; size_class < class_count; ++size_class) {
    Bin& bin = heap->bins[size_class];
    Slab* const current = bin.current;
    bin.current = &empty_slab;
    bin.left = 0;
    heap->newest[size_class] = 0;
    if (current != &empty_slab) {
      retire(heap, current);
    }
    while (heap->waiting[size_class].listed != 0) {
      Slab* const slab = &region.slabs[heap->waiting[size_class].listed];
      unlink(heap, slab);
      retire(heap, slab);
    }
  }
  while (heap->detached != 0) {
    Slab* const slab = &region.slabs[heap->detached];
    unlink(heap, slab);
    retire(heap, slab);
  }
  heap->returning = {};
  heap->last_freed = nullptr;
  heap->pending.store(0, std::memory_order_relaxed);
  heap->taken = 0;
}

std::uint64_t live_bytes(const ThreadHeap* heap) {
  std::uint64_t bytes = 0;
  for_each_slab(heap, [&](const Slab* slab) {
    // Blocks that other threads freed are no longer live, though their slab still counts them.
    const std::uint64_t waiting = region.directory[index_of(slab)].remote.load(std::memory_order_relaxed) >> 32;
    bytes += (slab->used - waiting) * slab->block_bytes;
  });
  // Nor are those at hand, those on their way back, and those never handed out.
  for (unsigned size_class = 0; size_class < class_count; ++size_class) {
    const Bin& bin = heap->bins[size_class];
    bytes -= (std::uint64_t{heap->newest[size_class]} + bin.left) * bin.block_bytes;
  }
  for (const void* const block : heap->returning) {
    if (block != nullptr) {
      bytes -= class_bytes(region.owner_of(region.granule_of(block)).size_class());
    }
  }
  // Of blocks of whole pages the caller knows only what is in use.
  for (std::uint32_t length = shortest_run; length <= longest_run; ++length) {
    bytes -= heap->runs[length - shortest_run] != nullptr ? std::uint64_t{length} << page_shift : 0;
  }
  return bytes;
}

}  // namespace blockyard::heap
