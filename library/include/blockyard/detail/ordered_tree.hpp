/// OrderedTree: the part of the B-tree under RBMap and RBSet that does not compare keys. Inside of ordered_index.hpp.
///
/// A tree holds *links* to elements, never elements: those stay where they were made. A tree node ("leaf", or "branch"
/// with children) is about 512 bytes: a header, links to elements, copies of keys where these are small, and in a
/// branch links to children. Every element begins with a link to the node that links it (its *home*), so it finds its
/// neighbours by itself.
///
/// Where keys are ordered as bytes (ordered_bytes.hpp), a node holds a *word* of each: 8 bytes, from the node's `skip`
/// on. A search compares no byte before it, so a key that comes to a node must share those bytes with all keys below.
/// It does if the separators before and behind the node share them. At the edges of the tree, where one of these is
/// missing, a node skips no more than the root does, and a search first compares these bytes with a key of the root.
///
/// Splitting, joining and balancing move keys as bytes and links as numbers. Where nodes lie, and the bytes that order
/// keys, is all that they know of a type. So elements in the window of the block allocators, which 32-bit links reach,
/// share one OrderedTree, compiled into libblockyard (a set or map took 4 KiB more of a program without that). For
/// elements anywhere else, which containers over malloc and PagedAllocator have for comparison, it is a template
/// throughout, as an engine's containers are.
///
/// Bounds: as OrderedIndex. Nothing here throws but make_room(). Source: as OrderedIndex.
#ifndef BLOCKYARD_DETAIL_ORDERED_TREE_HPP
#define BLOCKYARD_DETAIL_ORDERED_TREE_HPP

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "blockyard/detail/link.hpp"
#include "blockyard/detail/visibility.h"

namespace blockyard::container {

/// How a tree refers to elements and nodes: by 32 bits, or by pointer. `Raw` is a link to an element.
struct NearLinks {
  template <class T>
  using Link = NearLink<T>;
  using Raw = std::uint32_t;
};
struct FarLinks {
  template <class T>
  using Link = FarLink<T>;
  using Raw = void*;
};

/// The header of a tree node; the rest lies behind it as TreeShape says.
template <class Links>
struct alignas(8) TreeNode {
  typename Links::template Link<TreeNode> parent;
  std::uint8_t count = 0;  ///< of elements; a branch has a child more
  std::uint8_t level = 0;  ///< 0 is a leaf
  std::uint16_t skip = 0;  ///< where in their keys its words begin, bytes
};

/// What every element begins with.
template <class Links>
struct TreeElement {
  typename Links::template Link<TreeNode<Links>> home;
};

/// The bytes that order the key of an element.
using KeyBytes = std::string_view (*)(const void* element) noexcept;

/// Where in a node its parts lie, bytes from its begin.
struct TreeShape {
  std::uint16_t elements;
  std::uint16_t keys;
  std::uint16_t children;
  std::uint16_t leaf_bytes;
  std::uint16_t branch_bytes;
  std::uint8_t capacity;       ///< most elements of a node
  std::uint8_t key_bytes;      ///< of the copy or word of a key; 0 where a node has neither
  std::uint8_t key_slots;      ///< places for keys; those beyond the node's count hold `padding`, 0: are whatever
  std::uint8_t element_shift;  ///< unit of a near link to an element, as a power of two
  std::uint64_t padding;       ///< the bytes of a key that none comes after, over and over
  KeyBytes bytes_of_key;       ///< where nodes have words, else nullptr

  /// `key_bytes` and `key_alignment` of a copied key or a word, else 0 and 1.
  static constexpr TreeShape of(std::size_t header_bytes, std::size_t link_bytes, std::size_t capacity,
                                std::size_t key_bytes, std::size_t key_alignment, std::size_t key_slots,
                                std::uint64_t padding, KeyBytes bytes_of_key) {
    const auto align = [](std::size_t at, std::size_t to) { return (at + to - 1) / to * to; };
    const std::size_t node_alignment = key_alignment < 8 ? 8 : key_alignment;
    const std::size_t elements = align(header_bytes, link_bytes);
    const std::size_t keys = align(elements + capacity * link_bytes, key_alignment);
    const std::size_t leaf = align(keys + (key_slots < capacity ? capacity : key_slots) * key_bytes, node_alignment);
    const std::size_t branch = align(leaf + (capacity + 1) * link_bytes, node_alignment);
    return {static_cast<std::uint16_t>(elements),
            static_cast<std::uint16_t>(keys),
            static_cast<std::uint16_t>(leaf),
            static_cast<std::uint16_t>(leaf),
            static_cast<std::uint16_t>(branch),
            static_cast<std::uint8_t>(capacity),
            static_cast<std::uint8_t>(key_bytes),
            static_cast<std::uint8_t>(key_slots),
            0,
            padding,
            bytes_of_key};
  }
};

/// A shape known when the program runs: one OrderedTree for all near elements.
struct NearShape : TreeShape {
  using Links = NearLinks;
  [[nodiscard]] void* target(std::uint32_t link) const noexcept { return block::near_target(link, element_shift); }
  [[nodiscard]] std::uint32_t link_to(const void* element) const noexcept {
    return block::near_link(element, element_shift);
  }
};

/// A shape known when the program is compiled, that of an OrderedIndex: one OrderedTree for each type of element.
template <class Index>
struct FarShape {
  using Links = FarLinks;
  static constexpr std::size_t elements = Index::layout.elements;
  static constexpr std::size_t keys = Index::layout.keys;
  static constexpr std::size_t children = Index::layout.children;
  static constexpr std::size_t leaf_bytes = Index::layout.leaf_bytes;
  static constexpr std::size_t branch_bytes = Index::layout.branch_bytes;
  static constexpr unsigned capacity = Index::layout.capacity;
  static constexpr std::size_t key_bytes = Index::layout.key_bytes;
  static constexpr unsigned key_slots = Index::layout.key_slots;
  static constexpr std::uint64_t padding = Index::layout.padding;
  static constexpr KeyBytes bytes_of_key = Index::layout.bytes_of_key;
  [[nodiscard]] static void* target(void* link) noexcept { return link; }
  [[nodiscard]] static void* link_to(const void* element) noexcept { return const_cast<void*>(element); }
};

/// All functions take the shape of the nodes; a tree is the link to its root.
template <class Shape>
struct OrderedTree {
  using Links = typename Shape::Links;
  using Raw = typename Links::Raw;
  using Node = TreeNode<Links>;
  using NodeLink = typename Links::template Link<Node>;
  using Element = TreeElement<Links>;

  /// A place in a node: of an element, or where one would be entered.
  struct Place {
    Node* node = nullptr;
    unsigned at = 0;
  };

  /// Makes room for one more at a place in a leaf, which may change it; in an empty tree its node is nullptr. Throws
  /// std::bad_alloc; the elements are as before then.
  static void make_room(const Shape& shape, NodeLink& root, Place& place);

  /// Enters an element at a place with room. Where keys are copied, the place of its copy is open: the caller fills it.
  static void enter(const Shape& shape, Place place, Element* element) noexcept;

  /// Keys of the tree will share no more bytes than `shared`: for a key that is about to be entered at an end.
  static void share_less(const Shape& shape, Node* root, std::size_t shared) noexcept;

  /// How many bytes all keys that a search may bring to a node share. O(levels, and those bytes).
  static std::size_t shared_below(const Shape& shape, const Node* node) noexcept;

  /// Takes the element at a place out. It reads no element but those that move.
  static void erase(const Shape& shape, NodeLink& root, Place place) noexcept;

  /// Where its home links an element.
  static unsigned index_in(const Shape& shape, const Node* node, const Element* element) noexcept;

  /// The neighbours of the element at a place; a null node at the ends.
  static Place after(const Shape& shape, Place place) noexcept;
  static Place before(const Shape& shape, Place place) noexcept;

  /// The first and the last element's place.
  static Place first(const Shape& shape, Node* root) noexcept;
  static Place last(const Shape& shape, Node* root) noexcept;

  /// Gives the nodes from `node` downwards back, after calling `visit(context, place, count)` for all elements in their
  /// order, several at a time.
  using Visit = void (*)(void* context, Place first, unsigned count);
  static void clear(const Shape& shape, Node* node, Visit visit, void* context) noexcept;

  static Node* child_at(const Shape& shape, const Node* node, unsigned at) noexcept {
    return children_of(shape, node)[at].get_unchecked();
  }
  static NodeLink* children_of(const Shape& shape, const Node* branch) noexcept {
    return reinterpret_cast<NodeLink*>(bytes_of(branch) + shape.children);
  }
  static Raw* elements_of(const Shape& shape, const Node* node) noexcept {
    return reinterpret_cast<Raw*>(bytes_of(node) + shape.elements);
  }
  static std::byte* keys_of(const Shape& shape, const Node* node) noexcept { return bytes_of(node) + shape.keys; }
  static Element* element_at(const Shape& shape, const Node* node, unsigned at) noexcept {
    return static_cast<Element*>(shape.target(elements_of(shape, node)[at]));
  }
  static std::string_view key_at(const Shape& shape, Place place) noexcept {
    return shape.bytes_of_key(element_at(shape, place.node, place.at));
  }

 private:
  static std::byte* bytes_of(const Node* node) noexcept {
    return reinterpret_cast<std::byte*>(const_cast<Node*>(node));
  }

  static Node* new_node(const Shape& shape, unsigned level);
  static void free_node(const Shape& shape, Node* node) noexcept;
  static void pad(const Shape& shape, Node* node, unsigned from, unsigned to) noexcept;
  static void lower_count(const Shape& shape, Node* node, unsigned count) noexcept;
  static unsigned position_of(const Shape& shape, const Node* node) noexcept;
  static Place separator(const Shape& shape, const Node* node, bool behind) noexcept;
  static std::uint64_t* words_of(const Shape& shape, const Node* node) noexcept {
    return reinterpret_cast<std::uint64_t*>(keys_of(shape, node));
  }
  static void write_words(const Shape& shape, Node* node, unsigned from, unsigned count) noexcept;
  static void set_skip(const Shape& shape, Node* node, std::size_t skip) noexcept;
  static void shorten(const Shape& shape, Node* node, std::size_t shared) noexcept;
  static void shorten_edge(const Shape& shape, Node* node, bool last, std::size_t shared) noexcept;
  static void lengthen(const Shape& shape, Node* node) noexcept;
  static void shift(const Shape& shape, Node* node, unsigned from, unsigned to, unsigned count) noexcept;
  static void transfer(const Shape& shape, const Node* from, unsigned at, Node* to, unsigned where,
                       unsigned count) noexcept;
  static void put_child(const Shape& shape, Node* branch, unsigned at, Node* node) noexcept;
  static void move_children(const Shape& shape, Node* source, unsigned from, Node* target, unsigned to,
                            unsigned count) noexcept;
  static void flow_right(const Shape& shape, Node* parent, unsigned at, unsigned count) noexcept;
  static void flow_left(const Shape& shape, Node* parent, unsigned at, unsigned count) noexcept;
  static void relieve(const Shape& shape, NodeLink& root, Node* node, unsigned wanted_at);
  static void split(const Shape& shape, NodeLink& root, Node* node, unsigned wanted_at);
  static Place find_again(const Shape& shape, Element* before, Element* after) noexcept;
  static void mend(const Shape& shape, NodeLink& root, Node* node) noexcept;
  static void shrink_root(const Shape& shape, NodeLink& root, Node* node) noexcept;
};

}  // namespace blockyard::container

#include "blockyard/detail/ordered_tree_impl.hpp"

#endif
