#include "heap/heap_contents.hpp"

#include <utility>

#include "heap/bound.hpp"
#include "heap/slabs.hpp"
#include "heap/small_blocks.hpp"
#include "heap/supply.hpp"

namespace blockyard::heap {

void flush(ThreadHeap* heap) {
  Bound<Loop::blocks_flushed> blocks(class_count * most_cached);
  // Each that is given back was the heap's.
  Bound<Loop::slabs_flushed> slabs([=] { return heap->slabs; });
  for (DeferredFree& place : heap->deferred) {
    if (void* const block = std::exchange(place, {}).block; block != nullptr) {
      free_to_any_slab(heap, block);
    }
  }
  for (void*& place : heap->runs) {
    if (void* const block = std::exchange(place, nullptr); block != nullptr) {
      const auto page = static_cast<std::uint32_t>(region.page_of(block));
      region.pages[page].flags &= static_cast<std::uint8_t>(~page_cached);
      process_supply.give_pages(page);
    }
  }
  for (unsigned size_class = 0; size_class < class_count; ++size_class) {
    Bin& bin = heap->bins[size_class];
    while (void* const block = heap->take_cached(cache_place(size_class))) {
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
      Slab* const slab = &region.slabs[listed];
      unlink(heap, slab);
      retire(heap, slab);
    }
  }
}

void retire_all(ThreadHeap* heap) {
  Bound<Loop::slabs_of_arena> slabs([=] { return heap->slabs; });
  const auto retire_list = [&](const std::uint32_t& first) {
    while (first != 0) {
      slabs.turn();
      Slab* const slab = &region.slabs[first];
      unlink(heap, slab);
      retire(heap, slab);
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

}  // namespace blockyard::heap
