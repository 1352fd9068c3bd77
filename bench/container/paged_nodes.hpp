// Nodes from a PagedAllocator for each node type and thread, as in an engine: what the library's own are compared with.
#pragma once

#include "blockyard/node_blocks.hpp"
#include "blockyard/paged_allocator.hpp"

namespace blockyard {

struct PagedNodes {
  template <class Node>
  class For : public container::SharedByAll<For<Node>, FarLink, false> {
   public:
    [[nodiscard]] void* allocate() { return block::or_bad_alloc(blocks().allocate()); }
    void deallocate(void* block) noexcept { blocks().deallocate(block); }

   private:
    // Containers on it must stay on the thread that filled them, as an engine's do, and end before its thread_local
    // objects: static ones can't.
    static PagedBlocks& blocks() noexcept {
      static thread_local PagedBlocks instance(sizeof(Node), alignof(Node));
      return instance;
    }
  };
};

}  // namespace blockyard
