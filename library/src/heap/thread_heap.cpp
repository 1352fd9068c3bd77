#include "heap/thread_heap.hpp"

#include <algorithm>
#include <utility>

#include "heap/bound.hpp"
#include "heap/depot.hpp"
#include "heap/fault.hpp"
#include "heap/page_heap.hpp"
#include "heap/pending_stack.hpp"
#include "heap/process_heap.hpp"
#include "heap/remote_list.hpp"

namespace blockyard::heap {

constinit Slab empty_slab{.notify = notify_never};
constinit ThreadHeap empty_heap{&empty_slab, no_heap};
constinit thread_local ThreadHeap* thread_heap __attribute__((tls_model("initial-exec"))) = &empty_heap;
constinit thread_local std::uint8_t frees_without_heap __attribute__((tls_model("initial-exec"))) = 0;
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
  slab->state = static_cast<std::uint8_t>(SlabState::none);
  Bound<Loop::granules_of_slab> parts(most_granules);
  for (std::uint32_t part = 0; part < granules; ++part) {
    parts.turn();
    region.owners[granule + part].store(0, std::memory_order_relaxed);
    region.rows[granule + part].store(0, std::memory_order_relaxed);
  }
  region.directory[granule].remote.store(0, std::memory_order_relaxed);
  --heap->slabs;
  heap->waiting[slab->size_class].granules -= granules;
  process_heap.give_slab(granule, granules);
}

// Makes a slab without used blocks one that never gave any: its blocks come densely and in order, and no link is read.
void begin_anew(Slab* slab) {
  slab->free = nullptr;
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
  Bound<Loop::granules_of_slab> parts(most_granules);
  for (std::uint32_t part = 0; part < granules; ++part) {
    parts.turn();
    region.owners[granule + part].store(Owner(heap->index, size_class, part, heap->own).word(),
                                        std::memory_order_relaxed);
    region.rows[granule + part].store(heap->own ? 0 : row_place(size_class), std::memory_order_relaxed);
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

// Puts a slab's remote frees, which were just taken, into its list in O(1): what was free comes behind the last of them.
void adopt(ThreadHeap* heap, std::uint32_t granule, const RemoteBatch& batch) {
  Slab* const slab = &region.slabs[granule];
  char* const base = region.granule_address(granule);
  if (slab->free != nullptr) {
    *reinterpret_cast<void**>(base + (std::size_t{batch.last} - 1) * block_alignment) = encoded(slab->free);
  }
  slab->free = base + (std::size_t{batch.first} - 1) * block_alignment;
  slab->used -= batch.count;
  heap->remote_adopted += batch.count;
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
void* take_freed(Slab* slab) {
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

// From here on the heap allocates from `slab`, which begins anew or has no block left that was never handed out: such
// blocks are the bin's to give, all at once, and a slab leaves its bin when none is left there. They count as used from
// here on, so that giving one does not touch the slab.
void make_current(Bin& bin, Slab* slab) {
#if BLOCKYARD_CHECKED
  const bool anew = slab->used == 0 && slab->free == nullptr && slab->bump == region.granule_address(index_of(slab));
  if (bin.left != 0 || (slab->bump != slab->limit && !anew)) {
    report_broken("a slab that has handed out blocks has some left that were never handed out");
  }
#endif
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
  // Two at a time, both lists taken before either is looked at: an exchange waits until every store before it has got
  // its line, and what an adoption writes is cold.
  struct Taken {
    std::uint32_t granule;
    RemoteBatch batch;
  };
  std::array<Taken, 2> taken;
  std::uint32_t adopted = 0;
  std::uint32_t some = 0;
  Bound<Loop::lists_adopted> lists(most);
  do {
    for (some = 0; some < taken.size() && adopted + some < most; ++some) {
      if (heap->taken == 0) {
        heap->taken = PendingStack<>::take(heap->pending);
        if (heap->taken == 0) {
          break;
        }
      }
      lists.turn();
      const std::uint32_t granule = heap->taken;
      Directory& entry = region.directory[granule];
      prefetch_to_write(&region.slabs[granule]);
      // Read before adopting: from then on another thread may announce the slab again and write the link.
      heap->taken = entry.pending_next.load(std::memory_order_relaxed);
      taken[some] = {granule, RemoteList<>::adopt(entry.remote, entry.oldest)};
    }
    for (std::uint32_t each = 0; each < some; ++each) {
      adopt(heap, taken[each].granule, taken[each].batch);
    }
    adopted += some;
  } while (some == taken.size() && adopted < most);
  return adopted;
}

namespace {

// One by one: a call of the C library's memmove is cold code where it is seldom made.
void copy_blocks(void* const* from, void** to, std::uint32_t count) {
  Bound<Loop::blocks_copied> blocks(most_at_hand / 2);
  for (std::uint32_t each = 0; each < count; ++each) {
    blocks.turn();
    to[each] = from[each];
    __asm__("" ::: "memory");  // else the compiler makes that call of it
  }
}

}  // namespace

void ThreadHeap::keep_many(unsigned size_class) {
  const std::uint32_t capacity = at_hand_capacity(size_class);
  if (!is_wide(size_class) && capacity > most_at_hand_at_first) {
    const std::uint32_t count = at_hand(size_class);
    copy_blocks(first_at_hand(size_class), wide[size_class].data(), count);
    rows[size_class].last = wide_place(size_class);
    rows[size_class].second = place(size_class, count);
  }
  allow_at_hand(size_class, capacity);
}

namespace {

// Takes blocks that other threads freed, when none is at hand: one to hand out, the others at hand. Null: none wait.
void* take_handed_over(ThreadHeap* heap, unsigned size_class) {
  if (size_class >= Depot::classes || heap->own) {
    return nullptr;
  }
  void* block = nullptr;
  depot.take(size_class, process_heap.tick.load(std::memory_order_relaxed), [&](const Depot::Magazine& magazine) {
    const std::uint32_t count = Depot::blocks_of(size_class);
    // At hand [0] is null, the last but one the newest, the last is handed out.
    heap->keep_many(size_class);
    copy_blocks(magazine.blocks.data(), heap->first_at_hand(size_class) + 1, count - 2);
    heap->set_at_hand(size_class, magazine.blocks[count - 2], count - 1);
    block = magazine.blocks[count - 1];
  });
  return block;
}

// Hands the older half of the blocks at hand over to whoever wants some of the class, which makes room for `block`.
// False: nobody does, or enough wait already.
bool hand_over(ThreadHeap* heap, void* block, unsigned size_class) {
  if (size_class >= Depot::classes) {
    return false;
  }
  const std::uint16_t tick = process_heap.tick.load(std::memory_order_relaxed);
  const std::uint32_t capacity = at_hand_capacity(size_class);
  const std::uint32_t held = heap->at_hand(size_class);
  Row& row = heap->rows[size_class];
  if (held < capacity) {  // fewer were kept: see shed_blocks
    if (!depot.has_room(size_class, tick)) {
      return false;
    }
    heap->keep_many(size_class);
  } else {
    const std::uint32_t count = Depot::blocks_of(size_class);
    void** const oldest = heap->first_at_hand(size_class) + 1;
    if (!depot.give(size_class, tick,
                    [&](Depot::Magazine& magazine) { copy_blocks(oldest, magazine.blocks.data(), count); })) {
      return false;
    }
    copy_blocks(oldest + count, oldest, held - 1 - count);
    heap->set_at_hand(size_class, row.newest, held - count);
  }
  heap->keep_at_hand(row_place(size_class), block);
  return true;
}

}  // namespace

namespace {

// The rest of allocate_slow: the current slab has no block that was freed.
[[gnu::noinline]] void* allocate_slower(ThreadHeap* heap, unsigned size_class) {
  Bin& bin = heap->bins[size_class];
  // What comes now is seldom, its lines are cold, and between one and the next stands an atomic operation.
  prefetch_to_write(&heap->pending);
  // Where none waits, a line that is here: a look at page 0 of the table would cost a walk of the page table.
  const std::uint32_t waiting = heap->waiting[size_class].listed;
  prefetch_to_write(waiting != 0 ? static_cast<void*>(&region.slabs[waiting]) : &bin);
  depot.prefetch(size_class);
  void* block = take_handed_over(heap, size_class);
  if (block != nullptr) {
    return block;
  }
  adopt_pending(heap, adopted_a_slow_path);
  block = take_freed(bin.current);
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
      return allocate_small(heap, row_place(size_class));
    }
    block = take_freed(slab);
  }
  ++bin.current->used;
  return block;
}

}  // namespace

void* allocate_slow(ThreadHeap* heap, unsigned size_class) {
  if (heap == &empty_heap) [[unlikely]] {
    heap = process_heap.enter_thread();
    if (heap == nullptr) {
      return nullptr;
    }
    // A heap that another thread left has blocks of its own to give.
    if (void* const block = allocate_small(heap, row_place(size_class)); block != nullptr) {
      return block;
    }
  }
  // Who allocates more than is at hand comes here with each block: without the division behind at_hand_at_first, and
  // without what allocate_slower keeps of the caller's registers.
  if (heap->most_at_hand(size_class) < most_at_hand_at_first) [[unlikely]] {
    heap->allow_at_hand(size_class, std::max(heap->most_at_hand(size_class), at_hand_at_first(size_class)));
  }
  Slab* const current = heap->bins[size_class].current;
  if (void* const block = take_freed(current); block != nullptr) [[likely]] {
    ++current->used;
    return block;
  }
  return allocate_slower(heap, size_class);
}

void free_slow(ThreadHeap* heap, Slab* slab) {
  if (static_cast<SlabState>(slab->state) == SlabState::detached) {
    unlink(heap, slab);
    link(heap, slab, SlabState::listed);
  } else {
    const unsigned size_class = slab->size_class;
    retire_unless_last(heap, slab);
    shed_blocks(heap, size_class, 5);
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

namespace {

// A thread that only frees what others allocated has a heap too, from its 33rd free on, to hand them blocks over.
void free_without_heap(void* block) {
  if (frees_without_heap < frees_before_heap) {
    ++frees_without_heap;
  } else if (frees_without_heap != never_again) {
    process_heap.enter_thread();
    frees_without_heap = never_again;
  }
  free_remote(nullptr, block, static_cast<std::uint32_t>(region.granule_of(block)));
}

}  // namespace

namespace {

void send_back_to_other(ThreadHeap* heap, void* block) {
  const std::size_t granule = region.granule_of(block);
  // The exchange that publishes the block waits until its link is written: that line is wanted too.
  prefetch_to_write(&region.directory[granule - region.owner_of(granule).back()]);
  prefetch_to_write(block);
  send_back(heap, block, nullptr);
}

}  // namespace

// Of another thread's blocks that nobody wants, one fewer is kept at hand each time, until an allocation finds none:
// who frees another's level would be left with the last of each class, most of them alone in a slab.
void return_block_of_other(ThreadHeap* heap, void* block, unsigned size_class) {
  if (heap == &empty_heap) {  // which nobody may write
    free_without_heap(block);
    return;
  }
  // What comes now is seldom and its lines are cold: asked for at once, before any of them is waited for.
  // Two blocks at most go back into their slabs here; their lines came eight such frees ago and may be gone again.
  depot.prefetch_to_give(size_class);
  __builtin_prefetch(&process_heap.tick);
  for (unsigned each = 0; each < 2; ++each) {
    if (const Returning& next = heap->returning[each]; next.slab != nullptr) {
      prefetch_to_write(next.block);
      prefetch_to_write(next.slab);
    }
  }
  if (hand_over(heap, block, size_class)) {
    return;
  }
  if (const std::uint32_t most = heap->most_at_hand(size_class); most != 0) {
    heap->allow_at_hand(size_class, most - 1);
    send_back_to_other(heap, heap->take_at_hand(row_place(size_class)));
  }
  send_back_to_other(heap, block);
}

void return_to_other(ThreadHeap* heap, void* block) {
  if (block != nullptr) {
    free_remote(heap, block, static_cast<std::uint32_t>(region.granule_of(block)));
  }
}

void shed_blocks(ThreadHeap* heap, unsigned size_class, std::uint32_t less) {
  heap->allow_at_hand(size_class, heap->most_at_hand(size_class) - std::min(less, heap->most_at_hand(size_class)));
  // A block given back may empty its slab and come here again, with fewer still: 60 deep at most.
  const Row& row = heap->rows[size_class];
  Bound<Loop::blocks_shed> shed(most_at_hand);
  while (row.newest != nullptr && row.second > row.last) {
    shed.turn();
    free_to_any_slab(heap, heap->take_at_hand(row_place(size_class)));
  }
}

void settle(ThreadHeap* heap) {
  Bound<Loop::blocks_settled> blocks(class_count * most_at_hand);
  // Each that is given back was the heap's.
  Bound<Loop::slabs_settled> slabs([=] { return heap->slabs; });
  for (Returning& place : heap->returning) {
    if (void* const block = std::exchange(place, {}).block; block != nullptr) {
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
    while (void* const block = heap->take_at_hand(row_place(size_class))) {
      blocks.turn();
      free_to_any_slab(heap, block);
    }
    heap->keep_few(size_class);
    // Of a current slab those never handed out count as used.
    if (bin.current != &empty_slab && bin.current->used == bin.left) {
      retire(heap, bin.current);
      bin.current = &empty_slab;
      bin.left = 0;
    }
    std::uint32_t& listed = heap->waiting[size_class].listed;
    while (listed != 0 && region.slabs[listed].used == 0) {
      slabs.turn();
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
  const bool announce = RemoteList<>::push(entry.remote, entry.oldest, unit, [&](std::uint32_t next) {
    void* const link = next == 0 ? nullptr : base + (std::size_t{next} - 1) * block_alignment;
    *static_cast<void**>(block) = encoded(link);
  });
  if (announce) {
    PendingStack<>::push(owner->pending, first, entry.pending_next);
    if (heap != nullptr) {
      shed_blocks(heap, slab_owner.size_class(), 2);
    }
  }
}

void retire_all(ThreadHeap* heap) {
  Bound<Loop::slabs_of_own_heap> slabs([=] { return heap->slabs; });
  for (unsigned size_class = 0; size_class < class_count; ++size_class) {
    Bin& bin = heap->bins[size_class];
    Slab* const current = bin.current;
    bin.current = &empty_slab;
    bin.left = 0;
    heap->set_at_hand(size_class, nullptr, 0);
    if (current != &empty_slab) {
      retire(heap, current);
    }
    while (heap->waiting[size_class].listed != 0) {
      slabs.turn();
      Slab* const slab = &region.slabs[heap->waiting[size_class].listed];
      unlink(heap, slab);
      retire(heap, slab);
    }
  }
  while (heap->detached != 0) {
    slabs.turn();
    Slab* const slab = &region.slabs[heap->detached];
    unlink(heap, slab);
    retire(heap, slab);
  }
  heap->returning = {};
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
    bytes -= (std::uint64_t{heap->at_hand(size_class)} + bin.left) * bin.block_bytes;
  }
  for (const auto& [block, slab] : heap->returning) {
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
