// Frees of blocks by threads that do not own their slab: pushed by any thread, adopted by the owner.
// base/remote_list.hpp has the protocol.
#pragma once

#include <cstdint>

#include "base/atomic.hpp"
#include "base/remote_list.hpp"
#include "heap/front/free_links.hpp"
#include "heap/front/heap_table.hpp"
#include "heap/front/thread_heap.hpp"

namespace blockyard::heap {

using RemoteList = base::RemoteList<StandardAtomics>;
using PendingStack = base::PendingStack<StandardAtomics>;

/// Frees a small block into the remote-free list of its slab, whose class it returns in `*size_class`. Lock-free. True
/// where it is the first since the owner last adopted from the slab.
inline bool free_remote(void* block, unsigned* size_class = nullptr) {
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

}  // namespace blockyard::heap
