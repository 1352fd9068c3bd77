/// OrderedTree: the part of the B-tree under RBMap and RBSet that does not compare keys. Inside of
/// ordered_container.hpp.
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
/// share one OrderedTree, compiled into libblockyard (a set or map took 4 KiB more of a program without that). Elements
/// anywhere else, which containers over malloc and PagedAllocator have for comparison, have one for each type, as in an
/// engine's containers.
///
/// Bounds: a full node first fills its neighbours up and is split only when these are full too, which keeps nodes about
/// four fifths full under random insertion; ascending insertion fills them wholly; after erasures a node is at least a
/// quarter full. Nothing here throws but make_room().
///
/// Source: R. Bayer, E. McCreight, "Organization and Maintenance of Large Ordered Indices", 1972; filling neighbours:
/// D. Knuth's B*-tree; what the keys of a node share: R. Bayer, K. Unterauer, "Prefix B-Trees", 1977.
#ifndef BLOCKYARD_DETAIL_ORDERED_TREE_HPP
#define BLOCKYARD_DETAIL_ORDERED_TREE_HPP

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <new>
#include <string_view>

#include "blockyard/detail/link.hpp"
#include "blockyard/detail/on_throw.hpp"
#include "blockyard/detail/visibility.h"
#include "blockyard/ordered_bytes.hpp"
#include "blockyard/static_block_allocator.hpp"

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

/// Where in a node its parts lie, bytes from its begin, and what else a tree knows of its keys and elements.
struct TreeShape {
  std::uint32_t elements;
  std::uint32_t keys;
  std::uint32_t children;  ///< and the bytes of a leaf
  std::uint32_t branch_bytes;
  std::uint32_t capacity;       ///< most elements of a node
  std::uint32_t key_bytes;      ///< of the copy or word of a key; 0 where a node has neither
  std::uint32_t key_slots;      ///< places for keys; those beyond the node's count hold `padding`, 0: are whatever
  std::uint32_t element_shift;  ///< unit of a near link to an element, as a power of two
  std::uint64_t padding;        ///< the bytes of a key that none comes after, over and over
  std::string_view (*bytes_of_key)(const void* element) noexcept;  ///< where nodes have words, else nullptr
};

/// One OrderedTree for all near elements.
struct NearShape : TreeShape {
  using Links = NearLinks;
  [[nodiscard]] void* target(std::uint32_t link) const noexcept { return block::near_target(link, element_shift); }
  [[nodiscard]] std::uint32_t link_to(const void* element) const noexcept {
    return block::near_link(element, element_shift);
  }
};

/// One OrderedTree for each container over far elements, compiled for its shape.
template <class Container>
struct FarShape {
  using Links = FarLinks;
  static constexpr std::uint32_t elements = Container::layout.elements;
  static constexpr std::uint32_t keys = Container::layout.keys;
  static constexpr std::uint32_t children = Container::layout.children;
  static constexpr std::uint32_t branch_bytes = Container::layout.branch_bytes;
  static constexpr std::uint32_t capacity = Container::layout.capacity;
  static constexpr std::uint32_t key_bytes = Container::layout.key_bytes;
  static constexpr std::uint32_t key_slots = Container::layout.key_slots;
  static constexpr std::uint64_t padding = Container::layout.padding;
  static constexpr decltype(TreeShape::bytes_of_key) bytes_of_key = Container::layout.bytes_of_key;
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

  static std::byte* bytes_of(const Node* node) noexcept {
    return reinterpret_cast<std::byte*>(const_cast<Node*>(node));
  }
  static std::byte* keys_of(const Shape& shape, const Node* node) noexcept { return bytes_of(node) + shape.keys; }
  static Raw* elements_of(const Shape& shape, const Node* node) noexcept {
    return reinterpret_cast<Raw*>(bytes_of(node) + shape.elements);
  }
  static Element* element_at(const Shape& shape, const Node* node, unsigned at) noexcept {
    return static_cast<Element*>(shape.target(elements_of(shape, node)[at]));
  }
  static NodeLink* children_of(const Shape& shape, const Node* branch) noexcept {
    return reinterpret_cast<NodeLink*>(bytes_of(branch) + shape.children);
  }
  static Node* child_at(const Shape& shape, const Node* node, unsigned at) noexcept {
    return children_of(shape, node)[at].get_unchecked();
  }

  /// Where its home links an element.
  [[gnu::noinline]] static unsigned index_in(const Shape& shape, const Node* node, const Element* element) noexcept {
    const Raw* const elements = elements_of(shape, node);
    const Raw wanted = shape.link_to(element);
    unsigned at = 0;
    while (elements[at] != wanted) {
      ++at;
    }
    return at;
  }

  /// The place of the first element below a node, or of the last one; a null node where that is one.
  [[gnu::noinline]] static Place end_of(const Shape& shape, Node* node, bool last) noexcept {
    while (node != nullptr && node->level != 0) {
      node = child_at(shape, node, last ? node->count : 0u);
    }
    return {node, node != nullptr && last ? node->count - 1u : 0u};
  }

  /// The element before the one at a place, or the one behind it; a null node at the ends.
  [[gnu::noinline]] static Place neighbour(const Shape& shape, Place place, bool behind) noexcept {
    const auto [node, at] = place;
    if (node->level != 0) {
      return end_of(shape, child_at(shape, node, behind ? at + 1 : at), !behind);
    }
    if (behind ? at + 1 < node->count : at != 0) {
      return {node, behind ? at + 1 : at - 1};
    }
    return separator(shape, node, behind);
  }

  /// Makes room for one more at a place in a leaf, which may change it; in an empty tree its node is nullptr. Throws
  /// std::bad_alloc; the elements are as before then.
  [[gnu::noinline]] static void make_room(const Shape& shape, NodeLink& root, Place& place) {
    if (place.node == nullptr) {
      place.node = new_node(shape, 0);
      root = NodeLink(place.node);
      return;
    }
    while (place.node->count == shape.capacity) {
      // Remembered by neighbours, which no restructuring changes: no further comparison, which might throw.
      const Element* const before = place.at != 0 ? element_at(shape, place.node, place.at - 1) : nullptr;
      const Element* const after = place.at != shape.capacity ? element_at(shape, place.node, place.at) : nullptr;
      relieve(shape, root, place.node, place.at);
      place = between(shape, before, after);
    }
  }

  /// Enters an element behind the others of a leaf with room, where keys are copied or not held at all.
  static void put(const Shape& shape, Place place, Element* element) noexcept {
    ++place.node->count;
    elements_of(shape, place.node)[place.at] = shape.link_to(element);
    element->home = NodeLink(place.node);
  }
  /// Enters an element at a place with room. Where keys are copied, the place of its copy is open: the caller fills it.
  [[gnu::noinline]] static void enter(const Shape& shape, Place place, Element* element) noexcept {
    shift(shape, place.node, place.at, place.at + 1, place.node->count - place.at);
    put(shape, place, element);
    if (shape.bytes_of_key != nullptr) {
      write_words(shape, place.node, place.at, 1);
      lengthen(shape, place.node);
    }
  }

  /// Takes the element at a place out. It reads no element but those that move.
  [[gnu::noinline]] static void erase(const Shape& shape, NodeLink& root, Place place) noexcept {
    auto [node, at] = place;
    if (node->level != 0) {
      // The greatest of what is less takes its place; it is the last of a leaf.
      const Place most = end_of(shape, child_at(shape, node, at), true);
      if (shape.bytes_of_key != nullptr) {
        shorten_edge(shape, child_at(shape, node, at + 1), false,
                     shared_bytes(key_at(shape, most), key_at(shape, place)));
      }
      transfer(shape, most.node, most.at, node, at, 1);
      node = most.node;
      at = most.at;
    }
    shift(shape, node, at + 1, at, node->count - at - 1u);
    lower_count(shape, node, node->count - 1u);
    mend(shape, root, node);
  }

  /// Keys of the tree will share no more bytes than `shared`: for a key that is about to be entered at an end.
  [[gnu::noinline]] static void share_less(const Shape& shape, Node* root, std::size_t shared) noexcept {
    shorten_edge(shape, root, false, shared);
    shorten_edge(shape, root, true, shared);
  }

  /// How many bytes all keys that a search may bring to a node share. O(levels, and those bytes).
  [[gnu::noinline]] static std::size_t shared_below(const Shape& shape, const Node* node) noexcept {
    const bool is_root = !node->parent;
    const auto edge = [&](bool behind) {
      return is_root ? end_of(shape, const_cast<Node*>(node), behind) : separator(shape, node, behind);
    };
    const Place before = edge(false);
    const Place behind = edge(true);
    if (before.node != nullptr && behind.node != nullptr) {
      return shared_bytes(key_at(shape, before), key_at(shape, behind));
    }
    while (const Node* const parent = node->parent.get()) {
      node = parent;
    }
    return node->skip;
  }

  /// Bytes of the nodes from `node` downwards. O(nodes).
  [[gnu::noinline]] static std::size_t bytes_below(const Shape& shape, const Node* node) noexcept {
    if (node == nullptr || node->level == 0) {
      return node == nullptr ? 0 : shape.children;
    }
    std::size_t bytes = shape.branch_bytes;
    for (unsigned i = 0; i <= node->count; ++i) {
      bytes += bytes_below(shape, child_at(shape, node, i));
    }
    return bytes;
  }

  /// Gives the nodes from `node` downwards back, after calling `visit(context, place, count)` for all elements in their
  /// order, several at a time.
  using Visit = void (*)(void* context, Place first, unsigned count);
  [[gnu::noinline]] static void clear(const Shape& shape, Node* node, Visit visit, void* context) noexcept {
    if (node->level == 0) {
      visit(context, {node, 0}, node->count);
    } else {
      for (unsigned i = 0; i < node->count; ++i) {
        clear(shape, child_at(shape, node, i), visit, context);
        visit(context, {node, i}, 1);
      }
      clear(shape, child_at(shape, node, node->count), visit, context);
    }
    free_node(shape, node);
  }

 private:
  // Tree nodes come and go once for dozens of elements.
  static Node* new_node(const Shape& shape, unsigned level) {
    Node* const node = ::new (block::by_static_block_take(level == 0 ? shape.children : shape.branch_bytes)) Node;
    node->level = static_cast<std::uint8_t>(level);
    pad(shape, node, 0, shape.key_slots);
    return node;
  }
  static void free_node(const Shape& shape, Node* node) noexcept {
    block::by_static_block_give(node, node->level == 0 ? shape.children : shape.branch_bytes);
  }

  // What stands in the places of keys [from, to) that have gone.
  static void pad(const Shape& shape, Node* node, unsigned from, unsigned to) noexcept {
    if (shape.key_slots != 0) {
      std::byte* at = keys_of(shape, node) + from * shape.key_bytes;
      std::size_t left = (to - from) * shape.key_bytes;
      const std::uint64_t padding = shape.padding;
      for (; left >= sizeof padding; left -= sizeof padding, at += sizeof padding) {
        std::memcpy(at, &padding, sizeof padding);
      }
      std::memcpy(at, &padding, left);
    }
  }
  // The last entries of a node have gone.
  static void lower_count(const Shape& shape, Node* node, unsigned count) noexcept {
    pad(shape, node, count, node->count);
    node->count = static_cast<std::uint8_t>(count);
  }

  // Where a node is among its parent's children. It is looked for: kept in the nodes, it would have to be put right in
  // all that lie behind a new one, a cache miss each.
  [[gnu::noinline]] static unsigned position_of(const Shape& shape, const Node* node) noexcept {
    const NodeLink* const children = children_of(shape, node->parent.get_unchecked());
    const NodeLink wanted(const_cast<Node*>(node));
    unsigned at = 0;
    while (!(children[at] == wanted)) {
      ++at;
    }
    return at;
  }
  // The separator before all below a node, or behind them; a null node at an edge of the tree.
  static Place separator(const Shape& shape, const Node* node, bool behind) noexcept {
    while (Node* const parent = node->parent.get()) {
      const unsigned at = position_of(shape, node);
      if (at != (behind ? parent->count : 0u)) {
        return {parent, behind ? at : at - 1};
      }
      node = parent;
    }
    return {};
  }

  static std::string_view key_at(const Shape& shape, Place place) noexcept {
    return shape.bytes_of_key(element_at(shape, place.node, place.at));
  }
  static std::uint64_t* words_of(const Shape& shape, const Node* node) noexcept {
    return reinterpret_cast<std::uint64_t*>(keys_of(shape, node));
  }
  [[gnu::noinline]] static void write_words(const Shape& shape, Node* node, unsigned from, unsigned count) noexcept {
    for (unsigned i = from; i < from + count; ++i) {
      words_of(shape, node)[i] = word_at(key_at(shape, {node, i}), node->skip);
    }
  }
  static void set_skip(const Shape& shape, Node* node, std::size_t skip) noexcept {
    constexpr std::size_t most = std::numeric_limits<decltype(node->skip)>::max();
    node->skip = static_cast<decltype(node->skip)>(std::min(skip, most));
    write_words(shape, node, 0, node->count);
  }
  // Keys that come to a node share no more bytes than `shared`.
  static void shorten(const Shape& shape, Node* node, std::size_t shared) noexcept {
    if (node->skip > shared) {
      set_skip(shape, node, shared);
    }
  }
  // The same for the first or the last node of each level from `node` downwards.
  [[gnu::noinline]] static void shorten_edge(const Shape& shape, Node* node, bool last, std::size_t shared) noexcept {
    shorten(shape, node, shared);
    while (node->level != 0) {
      node = child_at(shape, node, last ? node->count : 0u);
      shorten(shape, node, shared);
    }
  }
  // Has the words of a node begin later if some are equal and all its keys share more bytes.
  [[gnu::noinline]] static void lengthen(const Shape& shape, Node* node) noexcept {
    const std::uint64_t* const words = words_of(shape, node);
    const std::uint64_t* const end = words + node->count;
    const bool shares_more = node->count != 0 && (words[0] ^ end[-1]) >> 56 == 0;
    if (shares_more && std::adjacent_find(words, end) != end) {
      if (const std::size_t shared = shared_below(shape, node); shared > node->skip) {
        set_skip(shape, node, shared);
      }
    }
  }

  // Moves `count` entries within a node.
  static void shift(const Shape& shape, Node* node, unsigned from, unsigned to, unsigned count) noexcept {
    if (count != 0) {
      if (shape.key_bytes != 0) {
        std::byte* const keys = keys_of(shape, node);
        std::memmove(keys + to * shape.key_bytes, keys + from * shape.key_bytes, count * shape.key_bytes);
      }
      Raw* const elements = elements_of(shape, node);
      std::memmove(elements + to, elements + from, count * sizeof(Raw));
    }
  }
  // Copies `count` entries to another node, whose elements then live there.
  [[gnu::noinline]] static void transfer(const Shape& shape, const Node* from, unsigned at, Node* to, unsigned where,
                                         unsigned count) noexcept {
    if (shape.key_bytes != 0 && from->skip == to->skip) {
      std::memcpy(keys_of(shape, to) + where * shape.key_bytes, keys_of(shape, from) + at * shape.key_bytes,
                  count * shape.key_bytes);
    }
    const Raw* const source = elements_of(shape, from) + at;
    Raw* const target = elements_of(shape, to) + where;
    const NodeLink home(to);
    for (unsigned i = 0; i < count; ++i) {
      target[i] = source[i];
      static_cast<Element*>(shape.target(source[i]))->home = home;
    }
    if (shape.bytes_of_key != nullptr && from->skip != to->skip) {
      write_words(shape, to, where, count);
    }
  }
  static void put_child(const Shape& shape, Node* branch, unsigned at, Node* node) noexcept {
    children_of(shape, branch)[at] = NodeLink(node);
    node->parent = NodeLink(branch);
  }
  // Moves children [from, from + count) of a branch to a place in it or in another.
  [[gnu::noinline]] static void move_children(const Shape& shape, Node* source, unsigned from, Node* target,
                                              unsigned to, unsigned count) noexcept {
    std::memmove(children_of(shape, target) + to, children_of(shape, source) + from, count * sizeof(NodeLink));
    for (unsigned i = 0; source != target && i < count; ++i) {
      child_at(shape, target, to + i)->parent = NodeLink(target);
    }
  }

  // Hands `count` entries of children[at] to children[at + 1] through the separator between them, or with `to_left` the
  // other way.
  [[gnu::noinline]] static void flow(const Shape& shape, Node* parent, unsigned at, bool to_left,
                                     unsigned count) noexcept {
    Node* const from = child_at(shape, parent, to_left ? at + 1 : at);
    Node* const to = child_at(shape, parent, to_left ? at : at + 1);
    const unsigned separator = to_left ? count - 1 : from->count - count;  // it will be
    const unsigned first = to_left ? 0 : separator + 1;
    const unsigned end = to_left ? to->count + 1u : 0;
    if (shape.bytes_of_key != nullptr) {
      shorten(shape, to, shared_bytes(key_at(shape, {from, separator}), key_at(shape, {parent, at})));
    }
    if (!to_left) {
      shift(shape, to, 0, count, to->count);
    }
    transfer(shape, parent, at, to, to_left ? to->count : count - 1, 1);
    transfer(shape, from, first, to, end, count - 1);
    transfer(shape, from, separator, parent, at, 1);
    if (to_left) {
      shift(shape, from, count, 0, from->count - count);
    }
    if (from->level != 0) {
      if (!to_left) {
        move_children(shape, to, 0, to, count, to->count + 1u);
      }
      move_children(shape, from, first, to, end, count);
      if (to_left) {
        move_children(shape, from, count, from, 0, from->count + 1u - count);
      }
    }
    to->count = static_cast<std::uint8_t>(to->count + count);
    lower_count(shape, from, from->count - count);
  }

  // One step towards room in a full node: fills a neighbour up, else splits, after the parent was relieved if that is
  // full.
  [[gnu::noinline]] static void relieve(const Shape& shape, NodeLink& root, Node* node, unsigned wanted_at) {
    if (Node* const parent = node->parent.get()) {
      const unsigned at = position_of(shape, node);
      const auto room_in = [&](unsigned child) { return shape.capacity - child_at(shape, parent, child)->count; };
      // A neighbour that is nearly full would soon be full again.
      const unsigned worth = shape.capacity / 8u + 1;
      if (at != 0 && room_in(at - 1) >= worth) {
        return flow(shape, parent, at - 1, true, (room_in(at - 1) + 1) / 2);
      }
      if (at != parent->count && room_in(at + 1) >= worth) {
        return flow(shape, parent, at, false, (room_in(at + 1) + 1) / 2);
      }
      if (parent->count == shape.capacity) {
        return relieve(shape, root, parent, at);
      }
    }
    split(shape, root, node, wanted_at);
  }

  // A full node becomes two; the parent, if there is one, has room.
  [[gnu::noinline]] static void split(const Shape& shape, NodeLink& root, Node* node, unsigned wanted_at) {
    Node* parent = node->parent.get();
    Node* const new_root = parent == nullptr ? new_node(shape, node->level + 1u) : nullptr;
    block::OnThrow on_throw([&] {
      if (new_root != nullptr) {
        free_node(shape, new_root);
      }
    });
    Node* const right = new_node(shape, node->level);
    on_throw.done();
    if (new_root != nullptr) {
      parent = new_root;
      parent->skip = node->skip;
      put_child(shape, parent, 0, node);
      root = NodeLink(parent);
    }
    const unsigned at = position_of(shape, node);
    // An ascending fill leaves full nodes behind: the split is where the next one goes.
    const bool ascending = wanted_at == shape.capacity && at == parent->count;
    const unsigned keep = ascending ? shape.capacity - 2u : shape.capacity / 2u;
    const unsigned give = shape.capacity - keep - 1u;
    right->skip = node->skip;
    transfer(shape, node, keep + 1, right, 0, give);
    if (node->level != 0) {
      move_children(shape, node, keep + 1, right, 0, give + 1);
    }
    right->count = static_cast<std::uint8_t>(give);
    shift(shape, parent, at, at + 1, parent->count - at);
    move_children(shape, parent, at + 1, parent, at + 2, parent->count - at);
    ++parent->count;
    transfer(shape, node, keep, parent, at, 1);
    put_child(shape, parent, at + 1, right);
    lower_count(shape, node, keep);
    if (shape.bytes_of_key != nullptr) {
      for (Node* const changed : {parent, node, right}) {
        lengthen(shape, changed);
      }
    }
  }

  // The place in a leaf between two neighbours, one of which may have moved up to be a separator, or aside. At a leaf's
  // end the place before the separator and the one after it are both right: it is the one with room.
  static Place between(const Shape& shape, const Element* before, const Element* after) noexcept {
    const auto home_of = [](const Element* element) { return element->home.get_unchecked(); };
    const bool stayed = before != nullptr && home_of(before)->level == 0;
    if (after != nullptr && home_of(after)->level == 0 && !(stayed && home_of(before)->count != shape.capacity)) {
      return {home_of(after), index_in(shape, home_of(after), after)};
    }
    Place place = stayed ? Place{home_of(before), index_in(shape, home_of(before), before)}
                         : end_of(shape, child_at(shape, home_of(after), index_in(shape, home_of(after), after)), true);
    ++place.at;
    return place;
  }

  // After a removal: joins or balances nodes that have become too small, upwards.
  static void mend(const Shape& shape, NodeLink& root, Node* node) noexcept {
    for (; Node* const parent = node->parent.get(); node = parent) {
      if (node->count >= shape.capacity / 4u) {
        return;
      }
      const unsigned position = position_of(shape, node);
      const unsigned at = position == 0 ? 0 : position - 1;
      Node* const left = child_at(shape, parent, at);
      Node* const right = child_at(shape, parent, at + 1);
      const unsigned together = left->count + right->count + 1u;
      if (together > shape.capacity) {
        // Too many for one node: even out.
        const bool to_left = left->count < right->count;
        return flow(shape, parent, at, to_left,
                    static_cast<unsigned>(to_left ? right->count - left->count : left->count - right->count) / 2);
      }
      shorten(shape, left, right->skip);
      transfer(shape, parent, at, left, left->count, 1);
      transfer(shape, right, 0, left, left->count + 1u, right->count);
      if (left->level != 0) {
        move_children(shape, right, 0, left, left->count + 1u, right->count + 1u);
      }
      left->count = static_cast<std::uint8_t>(together);
      shift(shape, parent, at + 1, at, parent->count - at - 1u);
      move_children(shape, parent, at + 2, parent, at + 1, parent->count - at - 1u);
      lower_count(shape, parent, parent->count - 1u);
      free_node(shape, right);
    }
    if (node->count == 0) {
      Node* const child = node->level == 0 ? nullptr : child_at(shape, node, 0);
      root = NodeLink(child);
      if (child != nullptr) {
        child->parent = NodeLink();
        if (child->skip < node->skip) {
          set_skip(shape, child, node->skip);  // what the edges of the tree rely on
        }
      }
      free_node(shape, node);
    }
  }
};

extern template struct BY_API OrderedTree<NearShape>;

}  // namespace blockyard::container

#endif
