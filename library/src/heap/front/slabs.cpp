#include "heap/front/slabs.hpp"

#include <array>

#include "base/bound.hpp"
#include "base/index_list.hpp"
#include "base/say.hpp"
#include "heap/front/free_links.hpp"
#include "heap/pages/page_allocator.hpp"
#include "heap/settings.hpp"
#include "heap/transfer/remote_frees.hpp"

namespace blockyard::heap {

constinit std::uintptr_t link_key = 0;

namespace {

Slab& slab_at(std::uint32_t slice) { return region.slabs[slice]; }

std::uint32_t& list_of(ThreadHeap* heap, const Slab* slab, SlabState state) {
  return state == SlabState::listed ? heap->waiting[slab->size_class].listed : heap->detached;
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

}  // namespace

void link(ThreadHeap* heap, Slab* slab, SlabState state) {
  slab->state = static_cast<std::uint8_t>(state);
  slab->notify = state == SlabState::listed ? 0 : slab->capacity - 1;
  base::list_push(list_of(heap, slab, state), index_of(slab), slab_at);
}

void unlink(ThreadHeap* heap, Slab* slab) {
  base::list_remove(list_of(heap, slab, static_cast<SlabState>(slab->state)), index_of(slab), slab_at);
}

void retire(ThreadHeap* heap, Slab* slab) {
  const std::uint32_t slice = index_of(slab);
  const std::uint32_t slices = slab->slices;
  slab->state = static_cast<std::uint8_t>(SlabState::none);
  for (std::uint32_t part = 0; part < slices; ++part) {
    region.owners[slice + part].store(0, std::memory_order_relaxed);
    region.class_map[slice + part].store(0, std::memory_order_relaxed);
  }
  region.remote_frees[slice].remote.store(0, std::memory_order_relaxed);
  --heap->slabs;
  heap->waiting[slab->size_class].slices -= slices;
  page_allocator.give_slab(slice, slices, slab_at(slice).populated);
}

void retire_unless_last(ThreadHeap* heap, Slab* slab) {
  if (slab->next != 0 || slab->previous != 0) {
    unlink(heap, slab);
    retire(heap, slab);
  }
}

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

void make_current(Bin& bin, Slab* slab) {
#if BLOCKYARD_CHECKED
  const bool untouched =
      slab->used == 0 && slab->free == slab->limit && slab->bump == region.slice_address(index_of(slab));
  if (bin.left != 0 || (slab->bump != slab->limit && !untouched)) {
    base::say("blockyard: the heap itself is broken: a slab in use has blocks that were never handed out\n");
    std::abort();
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

std::uintptr_t link_of_another_thread(const Slab* slab, const void* block) {
  const std::uintptr_t next = decoded(block, link_key);
  if (next == 0) {
    return reinterpret_cast<std::uintptr_t>(slab->limit);
  }
  if (check_links && !is_link(slab, next)) {
    report_written_after_free(block);
  }
  return next;
}

namespace {

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

}  // namespace

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

}  // namespace blockyard::heap
