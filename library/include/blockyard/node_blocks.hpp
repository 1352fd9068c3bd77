/// Where a container's nodes come from: the parameter A of List, HashMap, RBMap and RBSet.
///
///   StaticBlocks   the process-wide pools (default)
///   DirectBlocks   a BlockAllocator: one that several containers share, given to the constructor; or one of the
///                  container's own, made with its first element. The fastest; one thread at a time. It adds 8 bytes to
///                  the container (List: none). With one of its own, a constructor of an element must not clear, move
///                  or swap the container, and a destructor that clear() calls must not insert
///   TempBlocks     temp memory of the calling thread (temp.hpp), for containers of one frame. Elements without
///                  destructors are not freed one by one, and the container may then be cleared or destroyed after
///                  that frame; nothing else is allowed there. Tables and tree nodes come from elsewhere and are freed
///   MallocBlocks   malloc
///
/// A copy of a container takes its nodes from the static pools, from the same shared allocator, or from a new allocator
/// of its own. A moved or swapped container keeps its nodes at their addresses, and its allocator.
///
/// To write another: a class with a member template For<Node> that has the members of StaticBlocks::For and its base.
#ifndef BLOCKYARD_NODE_BLOCKS_HPP
#define BLOCKYARD_NODE_BLOCKS_HPP

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <new>
#include <utility>

#include "blockyard/block_allocator.hpp"
#include "blockyard/detail/link.hpp"
#include "blockyard/static_block_allocator.hpp"
#include "blockyard/temp.hpp"

namespace blockyard {

namespace container {

/// What a For has that is empty, so that all containers share one allocator. Other For have these members, too.
template <class For, template <class> class NodeLink, bool chains>
struct SharedByAll {
  /// How the container refers to its nodes.
  template <class T>
  using Link = NodeLink<T>;
  /// Whether an allocator of the container's own can free all nodes at once.
  static constexpr bool can_reset = false;
  /// Whether nodes linked through their first word, a Link<Node>, can be freed at once.
  static constexpr bool can_chain = chains;
  /// The allocator for a copy of the container.
  [[nodiscard]] For for_copy() const noexcept { return {}; }
  /// Whether the one may free a node of the other.
  [[nodiscard]] bool shares_with(const For&) const noexcept { return true; }
  void swap(For&) noexcept {}
};

}  // namespace container

struct StaticBlocks {
  template <class Node>
  class For : public container::SharedByAll<For<Node>, NearLink, true> {
   public:
    /// Memory for a Node. Throws std::bad_alloc.
    [[nodiscard]] void* allocate() { return TypedStaticBlockAllocator<Node>::allocate(); }
    void deallocate(void* block) noexcept { TypedStaticBlockAllocator<Node>::deallocate(block); }
    /// Frees linked nodes. O(1).
    void deallocate_chain(void* first, void* last, std::size_t count) noexcept {
      TypedStaticBlockAllocator<Node>::deallocate_chain(first, last, count);
    }
  };
};

struct DirectBlocks {
  template <class Node>
  class For {
   public:
    template <class T>
    using Link = NearLink<T>;
    static constexpr bool can_reset = true;
    static constexpr bool can_chain = true;

    constexpr For() noexcept = default;
    /// Shares `blocks`, which must outlive the container. Throws std::invalid_argument if its blocks do not fit a Node,
    /// or if only one of the block's and the Node's strides is a multiple of 8: their links then differ.
    For(BlockAllocator& blocks) : tagged_(reinterpret_cast<std::uintptr_t>(&blocks)) {  // NOLINT: converts
      constexpr std::size_t stride = block::stride_of(sizeof(Node), alignof(Node));
      if (!blocks.fits(sizeof(Node), alignof(Node)) ||
          block::near_shift_of(blocks.block_bytes()) != block::near_shift_of(stride)) {
        block::throw_invalid_argument("blockyard: the blocks of this BlockAllocator don't fit the container's nodes");
      }
    }
    For(For&& other) noexcept : tagged_(std::exchange(other.tagged_, other.shared())) {}
    For& operator=(For&& other) noexcept {
      if (this != &other) {
        end_own();
        tagged_ = std::exchange(other.tagged_, other.shared());
      }
      return *this;
    }
    ~For() { end_own(); }

    [[nodiscard]] void* allocate() {
      if (tagged_ == 0) [[unlikely]] {
        begin_own();
      }
      return block::or_bad_alloc(allocator()->allocate());
    }
    void deallocate(void* block) noexcept { allocator()->deallocate(block); }
    void deallocate_chain(void* first, void* last, std::size_t count) noexcept {
      allocator()->free_chain(first, last, count);
    }
    /// Frees all nodes at once if the allocator is the container's own, else does nothing.
    void reset() noexcept {
      if (is_own()) {
        allocator()->reset();
      }
    }
    /// Gives unused pages back if the allocator is the container's own, else does nothing.
    void trim() noexcept {
      if (is_own()) {
        allocator()->trim();
      }
    }
    [[nodiscard]] bool is_own() const noexcept { return (tagged_ & own_tag) != 0; }
    [[nodiscard]] For for_copy() const noexcept {
      For copy;
      copy.tagged_ = shared();
      return copy;
    }
    [[nodiscard]] bool shares_with(const For& other) const noexcept { return tagged_ == other.tagged_ && tagged_ != 0; }
    void swap(For& other) noexcept { std::swap(tagged_, other.tagged_); }
    /// The allocator; nullptr before the first element of a container that makes its own.
    [[nodiscard]] BlockAllocator* allocator() const noexcept {
      return reinterpret_cast<BlockAllocator*>(tagged_ & ~own_tag);
    }

   private:
    static constexpr std::uintptr_t own_tag = 1;
    using Records = TypedStaticBlockAllocator<BlockAllocator>;

    std::uintptr_t shared() const noexcept { return is_own() ? 0 : tagged_; }
    [[gnu::noinline]] void begin_own() {
      tagged_ = reinterpret_cast<std::uintptr_t>(Records::create(sizeof(Node), alignof(Node))) | own_tag;
    }
    void end_own() noexcept {
      if (is_own()) {
        Records::destroy(allocator());
      }
    }

    std::uintptr_t tagged_ = 0;  ///< the allocator's address; bit 0: it is the container's own
  };
};

struct TempBlocks {
  template <class Node>
  class For : public container::SharedByAll<For<Node>, FarLink, false> {
   public:
    using ForgetsNodes = void;
    [[nodiscard]] void* allocate() { return block::or_bad_alloc(temp_allocate(sizeof(Node), alignof(Node))); }
    void deallocate(void* block) noexcept { temp_deallocate(block); }
  };
};

struct MallocBlocks {
  template <class Node>
  class For : public container::SharedByAll<For<Node>, FarLink, false> {
   public:
    [[nodiscard]] void* allocate() {
      if constexpr (alignof(Node) <= alignof(std::max_align_t)) {
        return block::or_bad_alloc(std::malloc(sizeof(Node)));
      } else {
        return ::operator new (sizeof(Node), std::align_val_t{alignof(Node)});
      }
    }
    void deallocate(void* block) noexcept {
      if constexpr (alignof(Node) <= alignof(std::max_align_t)) {
        std::free(block);
      } else {
        ::operator delete (block, std::align_val_t{alignof(Node)});
      }
    }
  };
};

}  // namespace blockyard

#endif
