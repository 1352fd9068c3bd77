#include "heap/thread_heap.hpp"

#include "heap/bound.hpp"
#include "heap/page_heap.hpp"
#include "heap/pending_stack.hpp"
#include "heap/process_heap.hpp"
#include "heap/remote_list.hpp"

namespace blockyard::heap {

constinit Slab empty_slab{.notify = notify_never};
constinit ThreadHeap empty_heap{&empty_slab};
constinit thread_local ThreadHeap* thread_heap __attribute__((tls_model("initial-exec"))) = &empty_heap;
constinit std::uintptr_t link_key = 0;

namespace {

// Lists of remote frees adopted a slow path. With one, announcements of other size classes come faster than they are
// taken, and a producer whose blocks another thread frees held 7.5 MB for 0.27 MB live; with two 0.75 MB, with four no
// less (tests/heap/freed_by_another_thread). An adoption is O(1).
constexpr std::uint32_t adopted_a_slow_path = 2;

std::uint32_t index_of(const Slab* slab) { return static_cast<std::uint32_t>(slab - region.slabs); }

bool has_room(const Slab* slab) {
  return slab->free != nullptr || slab->adopted != nullptr || slab->bump != slab->limit;
}

std::uint32_t& list_of(ThreadHeap* heap, const Slab* slab, SlabState state) {
  return state == SlabState::listed ? heap->listed[slab->size_class] : heap->detached;
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
  const std::uint32_t granules = class_granules(slab->size_class);
  slab->postponed = 0;
  slab->state = static_cast<std::uint8_t>(SlabState::none);
  Bound<most_granules> parts("a slab has more granules than the stated bound");
  for (std::uint32_t part = 0; part < granules; ++part) {
    parts.turn();
    region.directory[granule + part].owner.store(nullptr, std::memory_order_relaxed);
    region.directory[granule + part].remote.store(0, std::memory_order_relaxed);
  }
  --heap->slabs;
  process_heap.give_slab(granule, granules);
}

Slab* fresh_slab(ThreadHeap* heap, unsigned size_class) {
  const std::uint32_t granules = class_granules(size_class);
  const std::uint32_t granule = process_heap.take_slab(granules);
  if (granule == 0) {
    return nullptr;
  }
  Bound<most_granules> parts("a slab has more granules than the stated bound");
  for (std::uint32_t part = 0; part < granules; ++part) {
    parts.turn();
    Directory& entry = region.directory[granule + part];
    entry.back = static_cast<std::uint8_t>(part);
    entry.size_class = static_cast<std::uint8_t>(size_class);
    entry.owner.store(heap, std::memory_order_relaxed);
  }
  Slab* const slab = &region.slabs[granule];
  const std::uint32_t bytes = class_bytes(size_class);
  const auto capacity = static_cast<std::uint32_t>(granules * granule_bytes / bytes);
  slab->free = slab->adopted = nullptr;
  slab->bump = region.granule_address(granule);
  slab->limit = slab->bump + std::size_t{capacity} * bytes;
  slab->used = 0;
  slab->capacity = capacity;
  slab->block_bytes = bytes;
  slab->size_class = static_cast<std::uint8_t>(size_class);
  ++heap->slabs;
  return slab;
}

// Takes a slab's remote frees back in O(1): the chain becomes whichever of its two lists is empty. Where neither is,
// the chain waits (`postponed`): its announcement has been taken, so nobody announces it again, and take_postponed()
// adopts it when a list has run out.
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
  if (slab->used == 0) {
    unlink(heap, slab);
    retire(heap, slab);
  } else if (state == SlabState::detached) {
    unlink(heap, slab);
    link(heap, slab, SlabState::listed);
  }
}

// The block that a slab with room gives next. The caller counts it.
void* take_block(ThreadHeap* heap, Slab* slab) {
  // Not for the empty slab, which all threads share and nobody may write.
  if (slab->free == nullptr && slab->adopted != nullptr) {
    slab->free = slab->adopted;
    slab->adopted = nullptr;
    if (slab->postponed != 0) {
      adopt_chain(heap, slab, index_of(slab));
    }
  }
  if (void* const block = slab->free; block != nullptr) {
    slab->free = encoded(*static_cast<void**>(block));
    return block;
  }
  if (slab->bump != slab->limit) {
    void* const block = slab->bump;
    slab->bump += slab->block_bytes;
    return block;
  }
  return nullptr;
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
  }
  Slab* slab = heap->current[size_class];
  void* block = take_block(heap, slab);
  if (block == nullptr) {
    adopt_pending(heap, adopted_a_slow_path);
    block = take_block(heap, slab);
  }
  if (block == nullptr) {
    if (slab != &empty_slab) {
      link(heap, slab, SlabState::detached);
    }
    if (const std::uint32_t waiting = heap->listed[size_class]; waiting != 0) {
      slab = &region.slabs[waiting];
      unlink(heap, slab);
    } else {
      slab = fresh_slab(heap, size_class);
      if (slab == nullptr) {
        heap->current[size_class] = &empty_slab;
        return nullptr;
      }
    }
    slab->state = static_cast<std::uint8_t>(SlabState::current);
    slab->notify = notify_never;
    heap->current[size_class] = slab;
    block = take_block(heap, slab);
  }
  ++slab->used;
  return block;
}

void free_slow(ThreadHeap* heap, Slab* slab) {
  unlink(heap, slab);
  if (static_cast<SlabState>(slab->state) == SlabState::detached) {
    link(heap, slab, SlabState::listed);
  } else {
    retire(heap, slab);
  }
}

void free_remote(void* block, std::uint32_t granule) {
  const std::uint32_t first = granule - region.directory[granule].back;
  Directory& entry = region.directory[first];
  char* const base = region.granule_address(first);
  const auto unit =
      static_cast<std::uint32_t>((static_cast<char*>(block) - base) / static_cast<std::ptrdiff_t>(block_alignment)) + 1;
  // The owner is read before the push: afterwards the slab may be adopted, emptied and given away at any time.
  ThreadHeap* const owner = entry.owner.load(std::memory_order_relaxed);
  const bool announce = RemoteList<>::push(entry.remote, unit, [&](std::uint32_t next) {
    void* const link = next == 0 ? nullptr : base + (std::size_t{next} - 1) * block_alignment;
    *static_cast<void**>(block) = encoded(link);
  });
  if (announce) {
    PendingStack<>::push(owner->pending, first, entry.pending_next);
  }
}

void retire_all(ThreadHeap* heap) {
  for (unsigned size_class = 0; size_class < class_count; ++size_class) {
    Slab* const current = heap->current[size_class];
    heap->current[size_class] = &empty_slab;
    if (current != &empty_slab) {
      retire(heap, current);
    }
    while (heap->listed[size_class] != 0) {
      Slab* const slab = &region.slabs[heap->listed[size_class]];
      unlink(heap, slab);
      retire(heap, slab);
    }
  }
  while (heap->detached != 0) {
    Slab* const slab = &region.slabs[heap->detached];
    unlink(heap, slab);
    retire(heap, slab);
  }
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
  return bytes;
}

namespace {

// Length of a free list, or ~0 when it leaves the slab or is longer than the slab has blocks.
std::uint32_t list_length(const Slab* slab, void* head) {
  const char* const base = region.granule_address(index_of(slab));
  std::uint32_t length = 0;
  for (void* block = head; block != nullptr; block = encoded(*static_cast<void**>(block))) {
    const std::ptrdiff_t offset = static_cast<const char*>(block) - base;
    if (offset < 0 || offset >= slab->limit - base || offset % slab->block_bytes != 0 || ++length > slab->capacity) {
      return ~std::uint32_t{0};
    }
  }
  return length;
}

const char* check_slab(const ThreadHeap* heap, const Slab* slab) {
  const std::uint32_t granule = index_of(slab);
  if (region.directory[granule].owner.load(std::memory_order_relaxed) != heap) {
    return "a slab's directory entry names another heap";
  }
  const std::uint32_t free = list_length(slab, slab->free);
  const std::uint32_t adopted = list_length(slab, slab->adopted);
  if (free > slab->capacity || adopted > slab->capacity) {
    return "a slab's free list leaves the slab or runs in a circle";
  }
  const auto never = static_cast<std::uint32_t>((slab->limit - slab->bump) / slab->block_bytes);
  if (slab->used + free + adopted + never != slab->capacity) {
    return "a slab's used, free and never used blocks do not add up";
  }
  return nullptr;
}

}  // namespace

const char* check(const ThreadHeap* heap) {
  std::uint32_t slabs = 0;
  const char* broken = nullptr;
  for_each_slab(heap, [&](const Slab* slab) {
    ++slabs;
    if (broken == nullptr) {
      broken = check_slab(heap, slab);
    }
  });
  if (broken != nullptr) {
    return broken;
  }
  if (slabs != heap->slabs) {
    return "a heap counts more or fewer slabs than stand in its lists";
  }
  for (unsigned size_class = 0; size_class < class_count; ++size_class) {
    const Slab* const current = heap->current[size_class];
    if (current != &empty_slab &&
        (static_cast<SlabState>(current->state) != SlabState::current || current->size_class != size_class)) {
      return "a current slab is not marked as such";
    }
    for (std::uint32_t index = heap->listed[size_class]; index != 0; index = region.slabs[index].next) {
      const Slab* const slab = &region.slabs[index];
      if (static_cast<SlabState>(slab->state) != SlabState::listed || slab->size_class != size_class ||
          !has_room(slab)) {
        return "a slab in the list of those with room does not belong there";
      }
    }
  }
  for (std::uint32_t index = heap->detached; index != 0; index = region.slabs[index].next) {
    const Slab* const slab = &region.slabs[index];
    if (static_cast<SlabState>(slab->state) != SlabState::detached || has_room(slab)) {
      return "a slab in the list of those without room does not belong there";
    }
  }
  return nullptr;
}

}  // namespace blockyard::heap
