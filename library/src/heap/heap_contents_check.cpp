// The invariant walker of one thread's heap.
#include <algorithm>
#include <array>

#include "heap/free_links.hpp"
#include "heap/heap_contents.hpp"
#include "heap/slabs.hpp"
#include "heap/supply.hpp"

namespace blockyard::heap {
namespace {

// Length of a free list, or ~0 when it leaves the slab or is longer than the slab has blocks.
std::uint32_t list_length(const Slab* slab, void* head) {
  const char* const base = region.slice_address(index_of(slab));
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
  const std::uint32_t slice = index_of(slab);
  const Owner owner = region.owner_of(slice);
  if (owner.heap() != heap->index || owner.size_class() != slab->size_class) {
    return "a slab's entry in the owner table names another heap or class";
  }
  const std::uint32_t free = list_length(slab, slab->free);
  if (free > slab->capacity) {
    return "a slab's free list leaves the slab or runs in a circle";
  }
  if (slab->bump != slab->limit) {
    return "a slab has blocks left that were never handed out and are not its bin's";
  }
  if (slab->used + free != slab->capacity) {
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

// Every cached block stands there once; the blocks never handed out end where the current slab does.
const char* check_bin(const ThreadHeap* heap, unsigned size_class) {
  const Bin& bin = heap->bins[size_class];
  const void* const* const cached = heap->first_cached(size_class);
  const std::uint32_t count = heap->cached(size_class);
  void* const newest = heap->entries[size_class].newest;
  if (count > heap->cache_limit(size_class) || heap->cache_limit(size_class) > most_cached || cached[0] != nullptr ||
      (newest == nullptr) != (count == 0)) {
    return "more blocks are cached than there is room for, or fewer than none";
  }
  if (bin.left != 0 && bin.bump + std::size_t{bin.left} * bin.block_bytes != bin.current->limit) {
    return "a heap's bump pointer is not in its current slab";
  }
  std::array<const void*, most_cached> all{};
  const auto end = std::copy_n(cached + 1, std::max(count, 1u) - 1, all.begin()) + (count != 0 ? 1 : 0);
  if (count != 0) {
    all[count - 1] = newest;
  }
  for (auto block = all.begin(); block != end; ++block) {
    if (const char* const broken = check_cached(heap, *block, size_class); broken != nullptr) {
      return broken;
    }
    const auto same = [&](const void* other) { return other == *block; };
    if (std::any_of(all.begin(), block, same) ||
        std::any_of(heap->deferred.begin(), heap->deferred.end(),
                    [&](const DeferredFree& each) { return same(each.block); })) {
      return "a block is cached twice: it was freed twice";
    }
  }
  return nullptr;
}

}  // namespace

const char* check_handed_over(const void* block, unsigned size_class) {
  return check_cached(&empty_heap, block, size_class);
}

const char* check(const ThreadHeap* heap) {
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
      if (tag.length != length || tag.state != static_cast<std::uint8_t>(PageState::used_block) ||
          tag.flags != (page_populated | page_cached)) {
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
    if (current != &empty_slab &&
        (static_cast<SlabState>(current->state) != SlabState::current || current->size_class != size_class)) {
      return "a current slab is not marked as such";
    }
    for (std::uint32_t index = heap->waiting[size_class].listed; index != 0; index = region.slabs[index].next) {
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
