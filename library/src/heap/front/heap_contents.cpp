#include "heap/front/small_blocks.hpp"

#include <algorithm>
#include <utility>

#include "base/bound.hpp"
#include "heap/front/hardening.hpp"
#include "heap/pages/page_allocator.hpp"

namespace blockyard::heap {

void flush(ThreadHeap* heap) {
  base::Bound blocks("cached blocks of a parked heap flushed",
                     extended_begins[depot_classes] + (class_count - depot_classes) * most_in_bin);
  // Each that is given back was the heap's.
  base::Bound slabs("empty slabs of a parked heap given back", [=] { return heap->slabs; });
  for (DeferredFree& entry : heap->deferred) {
    if (void* const block = std::exchange(entry, {}).block; block != nullptr) {
      free_to_any_slab(heap, block);
    }
  }
  for (void*& cached : heap->runs) {
    if (void* const block = std::exchange(cached, nullptr); block != nullptr) {
      const auto page = static_cast<std::uint32_t>(region.page_of(block));
      region.pages[page].flags &= static_cast<std::uint8_t>(~page_cached);
      page_allocator.give_pages(page);
    }
  }
  for (unsigned size_class = 0; size_class < class_count; ++size_class) {
    Bin& bin = heap->bins[size_class];
    while (void* const block = heap->take_cached(CacheSlot::of_class(size_class))) {
      blocks.turn();
      free_to_any_slab(heap, block);
    }
    heap->reset_cache(size_class);
    // Of a current slab those never handed out count as used.
    if (bin.current != &empty_slab && bin.current->used == bin.left) {
      retire(heap, bin.current);
      bin.current = &empty_slab;
      bin.left = 0;
    }
    std::uint32_t& listed = heap->waiting[size_class].listed;
    while (listed != 0 && region.slabs[listed].used == 0) {
      slabs.turn();
      retire(heap, &region.slabs[listed]);
    }
  }
}

void retire_all(ThreadHeap* heap) {
  base::Bound slabs("slabs of an arena destroyed", [=] { return heap->slabs; });
  const auto retire_list = [&](const std::uint32_t& first) {
    while (first != 0) {
      slabs.turn();
      retire(heap, &region.slabs[first]);
    }
  };
  for (unsigned size_class = 0; size_class < class_count; ++size_class) {
    Bin& bin = heap->bins[size_class];
    Slab* const current = std::exchange(bin.current, &empty_slab);
    bin.left = 0;
    heap->set_cached(size_class, nullptr, 0);
    if (current != &empty_slab) {
      retire(heap, current);
    }
    retire_list(heap->waiting[size_class].listed);
  }
  retire_list(heap->detached);
  heap->deferred = {};
  heap->pending.store(0, std::memory_order_relaxed);
  heap->taken = 0;
}

std::uint64_t live_bytes(const ThreadHeap* heap) {
  std::uint64_t bytes = 0;
  for_each_slab(heap, [&](const Slab* slab) {
    // Blocks that other threads freed are no longer live, though their slab still counts them.
    const std::uint64_t waiting = region.remote_frees[index_of(slab)].remote.load(std::memory_order_relaxed) >> 32;
    bytes += (slab->used - waiting) * slab->block_bytes;
  });
  // Nor are those cached, those deferred, and those never handed out.
  for (unsigned size_class = 0; size_class < class_count; ++size_class) {
    const Bin& bin = heap->bins[size_class];
    bytes -= (std::uint64_t{heap->cached(size_class)} + bin.left) * bin.block_bytes;
  }
  for (const auto& [block, slab] : heap->deferred) {
    if (block != nullptr) {
      bytes -= class_bytes(region.owner_of(region.slice_of(block)).size_class());
    }
  }
  // Of blocks of whole pages the caller knows only what is in use.
  for (std::uint32_t length = shortest_run; length <= longest_run; ++length) {
    bytes -= heap->runs[length - shortest_run] != nullptr ? std::uint64_t{length} << page_shift : 0;
  }
  return bytes;
}

// The invariant walker of one thread's heap.
namespace {

struct FreeList {
  std::uint32_t length = 0;
  const void* broken = nullptr;  // the link that leads out of the slab stands here; null: all are links
};

// Ends at the first broken link, and behind as many blocks as the slab has.
FreeList walk(const Slab* slab) {
  const char* const base = region.slice_address(index_of(slab));
  FreeList list;
  const void* at = slab;  // whatever led to the first
  for (auto block = reinterpret_cast<std::uintptr_t>(slab->free);
       block != reinterpret_cast<std::uintptr_t>(slab->limit); ++list.length) {
    const std::uintptr_t offset = block - reinterpret_cast<std::uintptr_t>(base);
    if (!is_link(slab, block) || offset % slab->block_bytes != 0 || list.length > slab->capacity) {
      list.broken = at;
      return list;
    }
    at = reinterpret_cast<const void*>(block);
    block = decoded(at, slab->key);
    if (!is_link(slab, block)) {
      block = decoded(at, link_key);
      if (block == 0) {
        block = reinterpret_cast<std::uintptr_t>(slab->limit);
      }
    }
  }
  return list;
}

const char* check_slab(const ThreadHeap* heap, const Slab* slab) {
  const std::uint32_t slice = index_of(slab);
  const Owner owner = region.owner_of(slice);
  if (owner.heap() != heap->index || owner.size_class() != slab->size_class) {
    return "a slab's entry in the owner table names another heap or class";
  }
  const FreeList free = walk(slab);
  if (free.broken != nullptr) {
    return "a slab's free list leaves the slab, runs in a circle or was written to";
  }
  if (slab->bump != slab->limit) {
    return "a slab has blocks left that were never handed out and are not its bin's";
  }
  if (slab->used + free.length != slab->capacity) {
    return "a slab's used and free blocks do not add up";
  }
  return nullptr;
}

// A cached or deferred block is one of a slab of any thread's heap, and of `size_class` where that is one.
const char* check_cached(const ThreadHeap* heap, const void* block, unsigned size_class) {
  if (!region.contains(block)) {
    return "a cached pointer is no block of this heap";
  }
  const std::size_t slice = region.slice_of(block);
  const Owner owner = region.owner_of(slice);
  const std::size_t first = slice - owner.back();
  const bool may_be_here = owner.heap() == heap->index || (owner.heap() != 0 && !owner.is_arena() && !heap->is_arena);
  if (!may_be_here || (size_class != class_count && owner.size_class() != size_class) ||
      (region.offset_of(block) - (first << slice_shift)) % class_bytes(owner.size_class()) != 0) {
    return "a cached block is no block of its class, or one that must not leave its heap";
  }
  return nullptr;
}

// The blocks never handed out end where the current slab does.
const char* check_bin(const ThreadHeap* heap, unsigned size_class) {
  const Bin& bin = heap->bins[size_class];
  if (!heap->cache_is_sound(size_class)) {
    return "more blocks are cached than there is room for, or fewer than none";
  }
  if (bin.left != 0 && bin.bump + std::size_t{bin.left} * bin.block_bytes != bin.current->limit) {
    return "a heap's bump pointer is not in its current slab";
  }
  const char* broken = nullptr;
  heap->find_cached(size_class, [&](const void* block) {
    broken = check_cached(heap, block, size_class);
    return broken != nullptr;
  });
  return broken;
}

}  // namespace

const char* check_handed_over(const void* block, unsigned size_class) {
  return check_cached(&empty_heap, block, size_class);
}

const void* freed_twice(const ThreadHeap* heap) {
  const auto is_free_to_its_slab = [&](const void* block) {
    const std::size_t slice = region.slice_of(block);
    const Owner owner = region.owner_of(slice);
    return check_links && owner.heap() == heap->index && has_link(&region.slabs[slice - owner.back()], block);
  };
  for (unsigned size_class = 0; size_class < class_count; ++size_class) {
    std::uint32_t before = 0;
    const void* const found = heap->find_cached(size_class, [&](const void* block) {
      const void* const* const first = heap->first_cached(size_class) + 1;
      const auto same = [=](const void* other) { return other == block; };
      return std::any_of(first, first + before++, same) || is_free_to_its_slab(block) ||
             std::any_of(heap->deferred.begin(), heap->deferred.end(),
                         [&](const DeferredFree& other) { return same(other.block); });
    });
    if (found != nullptr) {
      return found;
    }
  }
  return nullptr;
}

const void* never_handed_out(const ThreadHeap* heap) {
  for (unsigned size_class = 0; size_class < class_count; ++size_class) {
    const Bin& bin = heap->bins[size_class];
    const void* const found = heap->find_cached(size_class, [&](const void* block) {
      return bin.left != 0 && block >= bin.bump && block < bin.current->limit;
    });
    if (found != nullptr) {
      return found;
    }
  }
  return nullptr;
}

const void* written_after_free(const ThreadHeap* heap) {
  for (unsigned size_class = 0; check_links && size_class < class_count; ++size_class) {
    const Slab* const current = heap->bins[size_class].current;
    const std::uint32_t listed = heap->waiting[size_class].listed;
    for (const Slab* const slab : {current, listed != 0 ? &std::as_const(region.slabs[listed]) : current}) {
      if (const FreeList list = walk(slab); list.broken != nullptr) {
        return list.broken;
      }
    }
  }
  return nullptr;
}

const char* check(const ThreadHeap* heap) {
  if (freed_twice(heap) != nullptr) {
    return "a cached block is free elsewhere too: it was freed twice";
  }
  for (unsigned size_class = 0; size_class < class_count; ++size_class) {
    if (const char* const broken_bin = check_bin(heap, size_class); broken_bin != nullptr) {
      return broken_bin;
    }
  }
  for (const auto& [block, slab] : heap->deferred) {
    if (block != nullptr) {
      if (const char* const broken_kept = check_cached(heap, block, class_count); broken_kept != nullptr) {
        return broken_kept;
      }
    }
  }
  for (std::uint32_t length = shortest_run; length <= longest_run; ++length) {
    if (const void* const block = heap->runs[length - shortest_run]; block != nullptr) {
      const PageTag& tag = region.pages[region.page_of(block)];
      if (tag.length != length || tag.state != PageState::used_block || (tag.flags & ~page_populated) != page_cached) {
        return "a cached run of pages is none, or of another length";
      }
    }
  }
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
    const Slab* const current = heap->bins[size_class].current;
    if (current != &empty_slab && (current->state != SlabState::current || current->size_class != size_class)) {
      return "a current slab is not marked as such";
    }
    for (std::uint32_t index = heap->waiting[size_class].listed; index != 0; index = region.slabs[index].next) {
      const Slab* const slab = &region.slabs[index];
      if (slab->state != SlabState::listed || slab->size_class != size_class || !has_room(slab)) {
        return "a slab in the list of those with room does not belong there";
      }
    }
  }
  for (std::uint32_t index = heap->detached; index != 0; index = region.slabs[index].next) {
    const Slab* const slab = &region.slabs[index];
    if (slab->state != SlabState::detached || has_room(slab)) {
      return "a slab in the list of those without room does not belong there";
    }
  }
  return nullptr;
}

}  // namespace blockyard::heap
