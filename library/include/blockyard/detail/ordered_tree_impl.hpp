/// What of OrderedTree need not be inlined; libblockyard has it for near links.
#ifndef BLOCKYARD_DETAIL_ORDERED_TREE_IMPL_HPP
#define BLOCKYARD_DETAIL_ORDERED_TREE_IMPL_HPP

#include <algorithm>
#include <cstring>
#include <limits>
#include <new>

#include "blockyard/detail/ordered_tree.hpp"
#include "blockyard/ordered_bytes.hpp"
#include "blockyard/static_block_allocator.hpp"

namespace blockyard::container {

// Tree nodes come and go once for dozens of elements.
template <class Shape>
auto OrderedTree<Shape>::new_node(const Shape& shape, unsigned level) -> Node* {
  Node* const node = ::new (block::by_static_block_take(level == 0 ? shape.leaf_bytes : shape.branch_bytes)) Node;
  node->level = static_cast<std::uint8_t>(level);
  pad(shape, node, 0, shape.key_slots);
  return node;
}

template <class Shape>
void OrderedTree<Shape>::free_node(const Shape& shape, Node* node) noexcept {
  block::by_static_block_give(node, node->level == 0 ? shape.leaf_bytes : shape.branch_bytes);
}

// What stands in the places of keys [from, to) that have gone.
template <class Shape>
void OrderedTree<Shape>::pad(const Shape& shape, Node* node, unsigned from, unsigned to) noexcept {
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
template <class Shape>
void OrderedTree<Shape>::lower_count(const Shape& shape, Node* node, unsigned count) noexcept {
  pad(shape, node, count, node->count);
  node->count = static_cast<std::uint8_t>(count);
}

// Where a node is among its parent's children. It is looked for: kept in the nodes, it would have to be put right in
// all that lie behind a new one, a cache miss each.
template <class Shape>
[[gnu::noinline]] unsigned OrderedTree<Shape>::position_of(const Shape& shape, const Node* node) noexcept {
  const NodeLink* const children = children_of(shape, node->parent.get_unchecked());
  const NodeLink wanted(const_cast<Node*>(node));
  unsigned at = 0;
  while (!(children[at] == wanted)) {
    ++at;
  }
  return at;
}

// The separator before all below a node, or behind them; a null node at an edge of the tree.
template <class Shape>
auto OrderedTree<Shape>::separator(const Shape& shape, const Node* node, bool behind) noexcept -> Place {
  while (Node* const parent = node->parent.get()) {
    const unsigned at = position_of(shape, node);
    if (at != (behind ? parent->count : 0u)) {
      return {parent, behind ? at : at - 1};
    }
    node = parent;
  }
  return {};
}

template <class Shape>
[[gnu::noinline]] std::size_t OrderedTree<Shape>::shared_below(const Shape& shape, const Node* node) noexcept {
  Place before = separator(shape, node, false);
  Place behind = separator(shape, node, true);
  if (!node->parent) {
    before = first(shape, const_cast<Node*>(node));
    behind = last(shape, const_cast<Node*>(node));
  } else if (before.node == nullptr || behind.node == nullptr) {
    while (const Node* const parent = node->parent.get()) {
      node = parent;
    }
    return node->skip;
  }
  return shared_bytes(key_at(shape, before), key_at(shape, behind));
}

template <class Shape>
[[gnu::noinline]] void OrderedTree<Shape>::write_words(const Shape& shape, Node* node, unsigned from,
                                                       unsigned count) noexcept {
  for (unsigned i = from; i < from + count; ++i) {
    words_of(shape, node)[i] = word_at(key_at(shape, {node, i}), node->skip);
  }
}

template <class Shape>
void OrderedTree<Shape>::set_skip(const Shape& shape, Node* node, std::size_t skip) noexcept {
  constexpr std::size_t most = std::numeric_limits<decltype(node->skip)>::max();
  node->skip = static_cast<decltype(node->skip)>(std::min(skip, most));
  write_words(shape, node, 0, node->count);
}

// Keys that come to a node share no more bytes than `shared`.
template <class Shape>
void OrderedTree<Shape>::shorten(const Shape& shape, Node* node, std::size_t shared) noexcept {
  if (node->skip > shared) {
    set_skip(shape, node, shared);
  }
}

// The same for the first or the last node of each level from `node` downwards.
template <class Shape>
[[gnu::noinline]] void OrderedTree<Shape>::shorten_edge(const Shape& shape, Node* node, bool last,
                                                        std::size_t shared) noexcept {
  shorten(shape, node, shared);
  while (node->level != 0) {
    node = child_at(shape, node, last ? node->count : 0u);
    shorten(shape, node, shared);
  }
}

template <class Shape>
[[gnu::noinline]] void OrderedTree<Shape>::share_less(const Shape& shape, Node* root, std::size_t shared) noexcept {
  shorten_edge(shape, root, false, shared);
  shorten_edge(shape, root, true, shared);
}

// Has the words of a node begin later if some are equal and all its keys share more bytes.
template <class Shape>
[[gnu::noinline]] void OrderedTree<Shape>::lengthen(const Shape& shape, Node* node) noexcept {
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
template <class Shape>
void OrderedTree<Shape>::shift(const Shape& shape, Node* node, unsigned from, unsigned to, unsigned count) noexcept {
  if (count == 0) {
    return;
  }
  if (shape.key_bytes != 0) {
    std::byte* const keys = keys_of(shape, node);
    std::memmove(keys + to * shape.key_bytes, keys + from * shape.key_bytes, count * shape.key_bytes);
  }
  Raw* const elements = elements_of(shape, node);
  std::memmove(elements + to, elements + from, count * sizeof(Raw));
}

// Copies `count` entries to another node, whose elements then live there.
template <class Shape>
[[gnu::noinline]] void OrderedTree<Shape>::transfer(const Shape& shape, const Node* from, unsigned at, Node* to,
                                                    unsigned where, unsigned count) noexcept {
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

template <class Shape>
void OrderedTree<Shape>::put_child(const Shape& shape, Node* branch, unsigned at, Node* node) noexcept {
  children_of(shape, branch)[at] = NodeLink(node);
  node->parent = NodeLink(branch);
}

// Moves children [from, from + count) of a branch to a place in it or in another.
template <class Shape>
[[gnu::noinline]] void OrderedTree<Shape>::move_children(const Shape& shape, Node* source, unsigned from, Node* target,
                                                         unsigned to, unsigned count) noexcept {
  std::memmove(children_of(shape, target) + to, children_of(shape, source) + from, count * sizeof(NodeLink));
  if (source != target) {
    for (unsigned i = 0; i < count; ++i) {
      child_at(shape, target, to + i)->parent = NodeLink(target);
    }
  }
}

// Hands the last `count` entries of children[at] to children[at + 1], through the separator between them.
template <class Shape>
[[gnu::noinline]] void OrderedTree<Shape>::flow_right(const Shape& shape, Node* parent, unsigned at,
                                                      unsigned count) noexcept {
  Node* const left = child_at(shape, parent, at);
  Node* const right = child_at(shape, parent, at + 1);
  if (shape.bytes_of_key != nullptr) {
    shorten(shape, right, shared_bytes(key_at(shape, {left, left->count - count}), key_at(shape, {parent, at})));
  }
  shift(shape, right, 0, count, right->count);
  transfer(shape, parent, at, right, count - 1, 1);
  transfer(shape, left, left->count - count + 1u, right, 0, count - 1);
  transfer(shape, left, left->count - count, parent, at, 1);
  if (left->level != 0) {
    move_children(shape, right, 0, right, count, right->count + 1u);
    move_children(shape, left, left->count + 1u - count, right, 0, count);
  }
  lower_count(shape, left, left->count - count);
  right->count = static_cast<std::uint8_t>(right->count + count);
}

// Hands the first `count` entries of children[at + 1] to children[at].
template <class Shape>
[[gnu::noinline]] void OrderedTree<Shape>::flow_left(const Shape& shape, Node* parent, unsigned at,
                                                     unsigned count) noexcept {
  Node* const left = child_at(shape, parent, at);
  Node* const right = child_at(shape, parent, at + 1);
  if (shape.bytes_of_key != nullptr) {
    shorten(shape, left, shared_bytes(key_at(shape, {parent, at}), key_at(shape, {right, count - 1})));
  }
  transfer(shape, parent, at, left, left->count, 1);
  transfer(shape, right, 0, left, left->count + 1u, count - 1);
  transfer(shape, right, count - 1, parent, at, 1);
  shift(shape, right, count, 0, right->count - count);
  if (left->level != 0) {
    move_children(shape, right, 0, left, left->count + 1u, count);
    move_children(shape, right, count, right, 0, right->count + 1u - count);
  }
  left->count = static_cast<std::uint8_t>(left->count + count);
  lower_count(shape, right, right->count - count);
}

// One step towards room in a full node: fills a neighbour up, else splits, after the parent was relieved if that is
// full.
template <class Shape>
[[gnu::noinline]] void OrderedTree<Shape>::relieve(const Shape& shape, NodeLink& root, Node* node, unsigned wanted_at) {
  Node* const parent = node->parent.get();
  if (parent != nullptr) {
    const unsigned at = position_of(shape, node);
    // A neighbour that is nearly full would soon be full again.
    const unsigned worth = shape.capacity / 8u + 1;
    if (at != 0) {
      if (const unsigned room = shape.capacity - child_at(shape, parent, at - 1)->count; room >= worth) {
        flow_left(shape, parent, at - 1, (room + 1) / 2);
        return;
      }
    }
    if (at != parent->count) {
      if (const unsigned room = shape.capacity - child_at(shape, parent, at + 1)->count; room >= worth) {
        flow_right(shape, parent, at, (room + 1) / 2);
        return;
      }
    }
    if (parent->count == shape.capacity) {
      relieve(shape, root, parent, at);
      return;
    }
  }
  split(shape, root, node, wanted_at);
}

// A full node becomes two; the parent, if there is one, has room.
template <class Shape>
[[gnu::noinline]] void OrderedTree<Shape>::split(const Shape& shape, NodeLink& root, Node* node, unsigned wanted_at) {
  Node* parent = node->parent.get();
  Node* const new_root = parent == nullptr ? new_node(shape, node->level + 1u) : nullptr;
  Node* right = nullptr;
  try {
    right = new_node(shape, node->level);
  } catch (...) {
    if (new_root != nullptr) {
      free_node(shape, new_root);
    }
    throw;
  }
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
    lengthen(shape, parent);
    lengthen(shape, node);
    lengthen(shape, right);
  }
}

template <class Shape>
[[gnu::noinline]] unsigned OrderedTree<Shape>::index_in(const Shape& shape, const Node* node,
                                                        const Element* element) noexcept {
  const Raw* const elements = elements_of(shape, node);
  const Raw wanted = shape.link_to(element);
  unsigned at = 0;
  while (elements[at] != wanted) {
    ++at;
  }
  return at;
}

// The place between two neighbours of a leaf, either of which may have moved up or aside.
template <class Shape>
auto OrderedTree<Shape>::find_again(const Shape& shape, Element* before, Element* after) noexcept -> Place {
  if (before != nullptr) {
    Node* const home = before->home.get_unchecked();
    if (home->level == 0) {
      // At a leaf's end the place before the separator and the one after it are both right: take the one with room.
      if (after != nullptr && home->count == shape.capacity && after->home.get_unchecked()->level == 0) {
        return {after->home.get_unchecked(), index_in(shape, after->home.get_unchecked(), after)};
      }
      return {home, index_in(shape, home, before) + 1};
    }
  }
  // `before` went up to be a separator: the place is the beginning of the leaf after it, where `after` is.
  Node* const home = after->home.get_unchecked();
  if (home->level == 0) {
    return {home, index_in(shape, home, after)};
  }
  // `after` went up: the end of the leaf before it.
  Node* leaf = child_at(shape, home, index_in(shape, home, after));
  while (leaf->level != 0) {
    leaf = child_at(shape, leaf, leaf->count);
  }
  return {leaf, leaf->count};
}

template <class Shape>
[[gnu::noinline]] void OrderedTree<Shape>::make_room(const Shape& shape, NodeLink& root, Place& place) {
  if (place.node == nullptr) {
    place.node = new_node(shape, 0);
    root = NodeLink(place.node);
    return;
  }
  while (place.node->count == shape.capacity) {
    // Remembered by neighbours, which no restructuring changes: no further comparison, which might throw.
    Element* const before = place.at != 0 ? element_at(shape, place.node, place.at - 1) : nullptr;
    Element* const after = place.at != shape.capacity ? element_at(shape, place.node, place.at) : nullptr;
    relieve(shape, root, place.node, place.at);
    place = find_again(shape, before, after);
  }
}

template <class Shape>
[[gnu::noinline]] void OrderedTree<Shape>::enter(const Shape& shape, Place place, Element* element) noexcept {
  shift(shape, place.node, place.at, place.at + 1, place.node->count - place.at);
  ++place.node->count;
  elements_of(shape, place.node)[place.at] = shape.link_to(element);
  element->home = NodeLink(place.node);
  if (shape.bytes_of_key != nullptr) {
    write_words(shape, place.node, place.at, 1);
    lengthen(shape, place.node);
  }
}

template <class Shape>
[[gnu::noinline]] void OrderedTree<Shape>::erase(const Shape& shape, NodeLink& root, Place place) noexcept {
  auto [node, at] = place;
  if (node->level != 0) {
    // The greatest of what is less takes its place; it is the last of a leaf.
    Node* leaf = child_at(shape, node, at);
    while (leaf->level != 0) {
      leaf = child_at(shape, leaf, leaf->count);
    }
    if (shape.bytes_of_key != nullptr) {
      shorten_edge(shape, child_at(shape, node, at + 1), false,
                   shared_bytes(key_at(shape, {leaf, leaf->count - 1u}), key_at(shape, {node, at})));
    }
    transfer(shape, leaf, leaf->count - 1u, node, at, 1);
    node = leaf;
    at = leaf->count - 1u;
  }
  shift(shape, node, at + 1, at, node->count - at - 1u);
  lower_count(shape, node, node->count - 1u);
  mend(shape, root, node);
}

// After a removal: joins or balances nodes that have become too small, upwards.
template <class Shape>
void OrderedTree<Shape>::mend(const Shape& shape, NodeLink& root, Node* node) noexcept {
  for (;;) {
    Node* const parent = node->parent.get();
    if (parent == nullptr) {
      shrink_root(shape, root, node);
      return;
    }
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
      if (left->count < right->count) {
        flow_left(shape, parent, at, (right->count - left->count) / 2u);
      } else {
        flow_right(shape, parent, at, (left->count - right->count) / 2u);
      }
      return;
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
    node = parent;
  }
}

template <class Shape>
void OrderedTree<Shape>::shrink_root(const Shape& shape, NodeLink& root, Node* node) noexcept {
  if (node->count != 0) {
    return;
  }
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

template <class Shape>
[[gnu::noinline]] auto OrderedTree<Shape>::after(const Shape& shape, Place place) noexcept -> Place {
  if (place.node->level != 0) {
    return first(shape, child_at(shape, place.node, place.at + 1));
  }
  return place.at + 1 < place.node->count ? Place{place.node, place.at + 1} : separator(shape, place.node, true);
}

template <class Shape>
[[gnu::noinline]] auto OrderedTree<Shape>::before(const Shape& shape, Place place) noexcept -> Place {
  if (place.node->level != 0) {
    return last(shape, child_at(shape, place.node, place.at));
  }
  return place.at != 0 ? Place{place.node, place.at - 1} : separator(shape, place.node, false);
}

template <class Shape>
[[gnu::noinline]] auto OrderedTree<Shape>::first(const Shape& shape, Node* root) noexcept -> Place {
  Node* node = root;
  while (node != nullptr && node->level != 0) {
    node = child_at(shape, node, 0);
  }
  return {node, 0};
}

template <class Shape>
[[gnu::noinline]] auto OrderedTree<Shape>::last(const Shape& shape, Node* root) noexcept -> Place {
  Node* node = root;
  while (node != nullptr && node->level != 0) {
    node = child_at(shape, node, node->count);
  }
  return {node, node == nullptr ? 0 : node->count - 1u};
}

template <class Shape>
[[gnu::noinline]] void OrderedTree<Shape>::clear(const Shape& shape, Node* node, Visit visit, void* context) noexcept {
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

extern template struct BY_API OrderedTree<NearShape>;

}  // namespace blockyard::container

#endif
