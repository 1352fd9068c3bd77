/// OrderedIndex: the B-tree that stands under RBMap and RBSet. Inside of rb_map.hpp and rb_set.hpp.
///
/// The tree holds *links* to elements, never elements: those stay where they were made. A tree node ("leaf", or
/// "branch" with children) is about 512 bytes; where keys are small and trivially copyable it holds copies of them, so
/// that a search touches one node a level and then the element; for other keys a comparison looks at the element. Every
/// element knows the tree node that links it (its *home*), so it finds its neighbours by itself.
///
/// Bounds: find, insert and erase O(log size): three levels hold 200 000 elements. A full node first fills its
/// neighbours up and is split only when these are full too, which keeps nodes about four fifths full under random
/// insertion; ascending insertion fills them wholly; after erasures a node is at least a quarter full.
///
/// Source: R. Bayer, E. McCreight, "Organization and Maintenance of Large Ordered Indices", 1972; filling neighbours:
/// D. Knuth's B*-tree.
#ifndef BLOCKYARD_ORDERED_INDEX_HPP
#define BLOCKYARD_ORDERED_INDEX_HPP

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <new>
#include <type_traits>
#include <utility>

#include "blockyard/node_blocks.hpp"

namespace blockyard::container {

/// The default order of RBMap and RBSet.
struct LessDefault {
  template <class T>
  [[nodiscard]] bool operator()(const T& a, const T& b) const {
    return a < b;
  }
};

/// `Element` has key() and a public member home_ of type Index::HomeLink; `LinkTo` is NearLink or FarLink.
template <class Element, class K, class Less, template <class> class LinkTo>
class OrderedIndex {
 public:
  struct Leaf;
  struct Branch;
  using HomeLink = LinkTo<Leaf>;
  using ElementLink = LinkTo<Element>;

 private:
  static constexpr bool copies_keys = std::is_trivially_copyable_v<K> && sizeof(K) <= 8;
  static constexpr bool compares_numbers = std::is_arithmetic_v<K> && std::is_same_v<Less, LessDefault>;
  struct NoKeys {};
  static constexpr std::size_t entry_bytes = sizeof(ElementLink) + (copies_keys ? sizeof(K) : 0);
  static constexpr std::size_t header_bytes = 16;

 public:
  /// Elements of a node. 512 bytes of leaf were faster than 256 and as fast as 1024.
  static constexpr unsigned capacity =
      static_cast<unsigned>(std::min<std::size_t>((512 - header_bytes) / entry_bytes, 62));

  // A link to a leaf may lead to a branch: both are cut in units of 8 bytes.
  struct alignas(8) Leaf {
    LinkTo<Branch> parent;
    std::uint16_t position = 0;  ///< among the parent's children
    std::uint8_t count = 0;
    bool is_leaf = true;
    struct Keys {
      alignas(K) std::byte bytes[capacity * sizeof(K)];
    };
    [[no_unique_address]] std::conditional_t<copies_keys, Keys, NoKeys> keys;
    ElementLink elements[capacity];
  };
  struct Branch : Leaf {
    HomeLink children[capacity + 1];
  };

  constexpr OrderedIndex() = default;
  OrderedIndex(const OrderedIndex&) = delete;
  OrderedIndex& operator=(const OrderedIndex&) = delete;

  void swap(OrderedIndex& other) noexcept {
    std::swap(root_, other.root_);
    std::swap(size_, other.size_);
  }

  [[nodiscard]] std::size_t size() const noexcept { return size_; }

  [[nodiscard]] Element* find(const K& key) const {
    for (const Leaf* node = root_.get(); node != nullptr;) {
      const unsigned at = lower_bound_in(node, key);
      if (at < node->count && !Less()(key, key_at(node, at))) {
        return node->elements[at].certain();
      }
      node = child_at(node, at);
    }
    return nullptr;
  }

  /// The first element whose key is not less than `key`; nullptr if none.
  [[nodiscard]] Element* lower_bound(const K& key) const {
    Element* found = nullptr;
    for (const Leaf* node = root_.get(); node != nullptr;) {
      const unsigned at = lower_bound_in(node, key);
      if (at < node->count) {
        found = node->elements[at].certain();
      }
      node = child_at(node, at);
    }
    return found;
  }

  /// Where a key belongs.
  struct Place {
    Element* found = nullptr;  ///< the element that has the key
    Leaf* leaf = nullptr;      ///< else the leaf that it would go to; nullptr in an empty index
    unsigned at = 0;
  };
  [[nodiscard, gnu::noinline]] Place place_of(const K& key) const {
    Place place;
    for (Leaf* node = root_.get(); node != nullptr;) {
      const unsigned at = lower_bound_in(node, key);
      if (at < node->count && !Less()(key, key_at(node, at))) {
        place.found = node->elements[at].certain();
        return place;
      }
      place.leaf = node;
      place.at = at;
      node = child_at(node, at);
    }
    return place;
  }

  /// Makes room for one more at `place`, which may change it. Throws std::bad_alloc; the elements are as before then.
  [[gnu::noinline]] void make_room(Place& place) {
    if (place.leaf == nullptr) {
      place.leaf = new_node<Leaf>();
      root_ = HomeLink(place.leaf);
      return;
    }
    while (place.leaf->count == capacity) {
      // Remembered by neighbours, which no restructuring changes: no further comparison, which might throw.
      Element* const before = place.at != 0 ? place.leaf->elements[place.at - 1].certain() : nullptr;
      Element* const after = place.at != capacity ? place.leaf->elements[place.at].certain() : nullptr;
      relieve(place.leaf, place.at);
      find_again(place, before, after);
    }
  }

  /// Enters an element at a place with room.
  void insert(const Place& place, Element* element) noexcept {
    Leaf* const leaf = place.leaf;
    shift(leaf, place.at, place.at + 1, leaf->count - place.at);
    ++leaf->count;
    put(leaf, place.at, element);
    ++size_;
  }

  /// Takes an element out; it is the caller's then.
  [[gnu::noinline]] void erase(Element* element) noexcept {
    Leaf* node = element->home_.certain();
    unsigned at = index_in(node, element);
    if (!node->is_leaf) {
      // The greatest of what is less takes its place; it is the last of a leaf.
      Leaf* leaf = child_at(node, at);
      while (!leaf->is_leaf) {
        leaf = child_at(leaf, leaf->count);
      }
      put(node, at, leaf->elements[leaf->count - 1].certain());
      node = leaf;
      at = leaf->count - 1u;
    }
    shift(node, at + 1, at, node->count - at - 1u);
    --node->count;
    --size_;
    mend(node);
  }

  [[nodiscard]] Element* first() const noexcept {
    const Leaf* node = root_.get();
    if (node == nullptr) {
      return nullptr;
    }
    while (!node->is_leaf) {
      node = child_at(node, 0);
    }
    return node->elements[0].certain();
  }
  [[nodiscard]] Element* last() const noexcept {
    const Leaf* node = root_.get();
    if (node == nullptr) {
      return nullptr;
    }
    while (!node->is_leaf) {
      node = child_at(node, node->count);
    }
    return node->elements[node->count - 1].certain();
  }

  /// The neighbours of an element, nullptr at the ends. `hint` is where in its home the element may be, and becomes
  /// where the neighbour is: an iteration that keeps it looks for nothing.
  [[nodiscard]] static Element* next(const Element* element, unsigned& hint) noexcept {
    const Leaf* node = element->home_.certain();
    unsigned at = hint < node->count && node->elements[hint].certain() == element ? hint : index_in(node, element);
    if (!node->is_leaf) {
      node = child_at(node, at + 1);
      while (!node->is_leaf) {
        node = child_at(node, 0);
      }
      hint = 0;
      return node->elements[0].certain();
    }
    ++at;
    while (at == node->count) {
      const Leaf* const parent = node->parent.get();
      if (parent == nullptr) {
        return nullptr;
      }
      at = node->position;
      node = parent;
    }
    // Elements lie in the order of their insertion: what comes soon is fetched before it is asked for.
    if (at + prefetch_distance < node->count) {
      __builtin_prefetch(node->elements[at + prefetch_distance].certain());
    }
    hint = at;
    return node->elements[at].certain();
  }
  [[nodiscard]] static Element* previous(const Element* element, unsigned& hint) noexcept {
    const Leaf* node = element->home_.certain();
    unsigned at = hint < node->count && node->elements[hint].certain() == element ? hint : index_in(node, element);
    if (!node->is_leaf) {
      node = child_at(node, at);
      while (!node->is_leaf) {
        node = child_at(node, node->count);
      }
      hint = node->count - 1u;
      return node->elements[hint].certain();
    }
    while (at == 0) {
      const Leaf* const parent = node->parent.get();
      if (parent == nullptr) {
        return nullptr;
      }
      at = node->position;
      node = parent;
    }
    hint = at - 1;
    return node->elements[hint].certain();
  }

  /// Gives all tree nodes back, and calls `destroy(element)` for each element, in order.
  template <class Destroy>
  void clear(Destroy&& destroy) noexcept {
    Leaf* const root = root_.get();
    root_ = HomeLink();
    size_ = 0;
    if (root != nullptr) {
      clear_below(root, destroy);
    }
  }

  /// Levels of the tree; 0 when empty.
  [[nodiscard]] unsigned depth() const noexcept {
    unsigned levels = 0;
    for (const Leaf* node = root_.get(); node != nullptr; node = child_at(node, 0)) {
      ++levels;
    }
    return levels;
  }

  /// Order, counts, homes and parents: for tests. O(size).
  [[nodiscard]] bool invariants_hold() const {
    std::size_t count = 0;
    const Element* previous = nullptr;
    const Leaf* const root = root_.get();
    if (root == nullptr) {
      return size_ == 0;
    }
    unsigned level = depth();
    return !root->parent && holds_below(root, level, previous, count) && count == size_;
  }

 private:
  static constexpr unsigned prefetch_distance = 8;
  static constexpr unsigned least_count = capacity / 4;
  static constexpr unsigned window = 16;

  // Tree nodes come and go once for dozens of elements.
  template <class Node>
  static Node* new_node() {
    return ::new (block::by_static_block_take(block::stride_of(sizeof(Node), alignof(Node)))) Node;
  }
  static void free_node(Leaf* node) noexcept {
    block::by_static_block_give(node, node->is_leaf ? block::stride_of(sizeof(Leaf), alignof(Leaf))
                                                    : block::stride_of(sizeof(Branch), alignof(Branch)));
  }

  static const K* keys_of(const Leaf* node) noexcept { return reinterpret_cast<const K*>(node->keys.bytes); }
  static const K& key_at(const Leaf* node, unsigned at) noexcept {
    if constexpr (copies_keys) {
      return keys_of(node)[at];
    } else {
      return node->elements[at].certain()->key();
    }
  }
  static Leaf* child_at(const Leaf* node, unsigned at) noexcept {
    return node->is_leaf ? nullptr : static_cast<const Branch*>(node)->children[at].certain();
  }

  // How many keys of a node are less than `key`, which are the first. Without branches that depend on keys: a
  // mispredicted one costs more than the comparisons.
  static unsigned lower_bound_in(const Leaf* node, const K& key) {
    if constexpr (copies_keys) {
      // The search would wait for one line after the other, and at its end for the link's.
      const char* const lines = reinterpret_cast<const char*>(node);
      for (std::size_t line = 64; line < sizeof(Leaf); line += 64) {
        __builtin_prefetch(lines + line);
      }
    }
    if constexpr (compares_numbers) {
      if (node->count >= window) {
        return lower_bound_of_numbers(keys_of(node), node->count, key);
      }
    }
    unsigned base = 0;
    for (unsigned count = node->count; count != 0;) {
      const unsigned half = (count + 1) / 2;
      base += half & (0u - static_cast<unsigned>(Less()(key_at(node, base + half - 1), key)));
      count -= half;
    }
    return base;
  }

  // Halving would wait for one load after the other, and compilers make jumps of it (4.4 mispredicted ones in a find
  // among a million). So the last key of each window is looked at, all side by side, and then all keys of one window.
  static unsigned lower_bound_of_numbers(const K* keys, unsigned count, const K wanted) {
    unsigned begin = 0;
    for (unsigned last = window - 1; last < capacity; last += window) {
      begin += static_cast<unsigned>(last < count) & static_cast<unsigned>(keys[last] < wanted);
    }
    // What lies before the window is less, so it does no harm that it begins earlier where the node ends.
    begin = std::min(begin * window, count - window);
    unsigned less = 0;
    for (unsigned i = 0; i < window; ++i) {
      less += keys[begin + i] < wanted;
    }
    return begin + less;
  }

  static unsigned index_in(const Leaf* node, const Element* element) noexcept {
    const ElementLink wanted(const_cast<Element*>(element));
    unsigned at = 0;
    while (node->elements[at] != wanted) {
      ++at;
    }
    return at;
  }

  // Moves `count` entries within a node.
  static void shift(Leaf* node, unsigned from, unsigned to, unsigned count) noexcept {
    if constexpr (copies_keys) {
      std::memmove(node->keys.bytes + to * sizeof(K), node->keys.bytes + from * sizeof(K), count * sizeof(K));
    }
    std::memmove(static_cast<void*>(node->elements + to), node->elements + from, count * sizeof(ElementLink));
  }

  static void put(Leaf* node, unsigned at, Element* element) noexcept {
    if constexpr (copies_keys) {
      std::memcpy(node->keys.bytes + at * sizeof(K), std::addressof(element->key()), sizeof(K));
    }
    node->elements[at] = ElementLink(element);
    element->home_ = HomeLink(node);
  }

  // Copies `count` entries to another node, whose elements then live there.
  [[gnu::noinline]] static void transfer(const Leaf* from, unsigned at, Leaf* to, unsigned where,
                                         unsigned count) noexcept {
    if constexpr (copies_keys) {
      std::memcpy(to->keys.bytes + where * sizeof(K), from->keys.bytes + at * sizeof(K), count * sizeof(K));
    }
    for (unsigned i = 0; i < count; ++i) {
      to->elements[where + i] = from->elements[at + i];
      to->elements[where + i].certain()->home_ = HomeLink(to);
    }
  }

  static void put_child(Branch* branch, unsigned at, Leaf* node) noexcept {
    branch->children[at] = HomeLink(node);
    node->parent = LinkTo<Branch>(branch);
    node->position = static_cast<std::uint16_t>(at);
  }

  // Moves children [from, from + count) of a branch to a place in it or in another.
  [[gnu::noinline]] static void move_children(Branch* source, unsigned from, Branch* target, unsigned to,
                                              unsigned count) noexcept {
    if (source == target && to > from) {
      for (unsigned i = count; i-- != 0;) {
        put_child(target, to + i, source->children[from + i].certain());
      }
    } else {
      for (unsigned i = 0; i < count; ++i) {
        put_child(target, to + i, source->children[from + i].certain());
      }
    }
  }

  // Hands the last `count` entries of children[at] to children[at + 1], through the separator between them.
  [[gnu::noinline]] static void flow_right(Branch* parent, unsigned at, unsigned count) noexcept {
    Leaf* const left = parent->children[at].certain();
    Leaf* const right = parent->children[at + 1].certain();
    shift(right, 0, count, right->count);
    put(right, count - 1, parent->elements[at].certain());
    transfer(left, left->count - count + 1u, right, 0, count - 1);
    put(parent, at, left->elements[left->count - count].certain());
    if (!left->is_leaf) {
      Branch* const target = static_cast<Branch*>(right);
      move_children(target, 0, target, count, right->count + 1u);
      move_children(static_cast<Branch*>(left), left->count + 1u - count, target, 0, count);
    }
    left->count = static_cast<std::uint8_t>(left->count - count);
    right->count = static_cast<std::uint8_t>(right->count + count);
  }

  // Hands the first `count` entries of children[at + 1] to children[at].
  [[gnu::noinline]] static void flow_left(Branch* parent, unsigned at, unsigned count) noexcept {
    Leaf* const left = parent->children[at].certain();
    Leaf* const right = parent->children[at + 1].certain();
    put(left, left->count, parent->elements[at].certain());
    transfer(right, 0, left, left->count + 1u, count - 1);
    put(parent, at, right->elements[count - 1].certain());
    shift(right, count, 0, right->count - count);
    if (!left->is_leaf) {
      Branch* const source = static_cast<Branch*>(right);
      move_children(source, 0, static_cast<Branch*>(left), left->count + 1u, count);
      move_children(source, count, source, 0, right->count + 1u - count);
    }
    left->count = static_cast<std::uint8_t>(left->count + count);
    right->count = static_cast<std::uint8_t>(right->count - count);
  }

  // One step towards room in a full node: fills a neighbour up, else splits, after the parent was relieved if that is
  // full.
  [[gnu::noinline]] void relieve(Leaf* node, unsigned wanted_at) {
    Branch* const parent = node->parent.get();
    if (parent != nullptr) {
      const unsigned at = node->position;
      // A neighbour that is nearly full would soon be full again.
      constexpr unsigned worth = capacity / 8 + 1;
      if (at != 0) {
        if (const unsigned room = capacity - parent->children[at - 1].certain()->count; room >= worth) {
          flow_left(parent, at - 1, (room + 1) / 2);
          return;
        }
      }
      if (at != parent->count) {
        if (const unsigned room = capacity - parent->children[at + 1].certain()->count; room >= worth) {
          flow_right(parent, at, (room + 1) / 2);
          return;
        }
      }
      if (parent->count == capacity) {
        relieve(parent, at);
        return;
      }
    }
    split(node, wanted_at);
  }

  // A full node becomes two; the parent, if there is one, has room.
  [[gnu::noinline]] void split(Leaf* node, unsigned wanted_at) {
    Branch* parent = node->parent.get();
    Branch* new_root = nullptr;
    if (parent == nullptr) {
      new_root = new_node<Branch>();
      new_root->is_leaf = false;
    }
    Leaf* right = nullptr;
    try {
      right = node->is_leaf ? new_node<Leaf>() : new_node<Branch>();
    } catch (...) {
      if (new_root != nullptr) {
        free_node(new_root);
      }
      throw;
    }
    right->is_leaf = node->is_leaf;
    if (new_root != nullptr) {
      parent = new_root;
      put_child(parent, 0, node);
      root_ = HomeLink(parent);
    }
    // An ascending fill leaves full nodes behind: the split is where the next one goes.
    const bool ascending = wanted_at == capacity && node->position == parent->count;
    const unsigned keep = ascending ? capacity - 2 : capacity / 2;
    const unsigned give = capacity - keep - 1;
    transfer(node, keep + 1, right, 0, give);
    if (!node->is_leaf) {
      move_children(static_cast<Branch*>(node), keep + 1, static_cast<Branch*>(right), 0, give + 1);
    }
    right->count = static_cast<std::uint8_t>(give);
    const unsigned at = node->position;
    shift(parent, at, at + 1, parent->count - at);
    move_children(parent, at + 1, parent, at + 2, parent->count - at);
    ++parent->count;
    put(parent, at, node->elements[keep].certain());
    put_child(parent, at + 1, right);
    node->count = static_cast<std::uint8_t>(keep);
  }

  // The place between two neighbours of a leaf, either of which may have moved up or aside.
  [[gnu::noinline]] static void find_again(Place& place, Element* before, Element* after) noexcept {
    if (before != nullptr) {
      Leaf* const home = before->home_.certain();
      if (home->is_leaf) {
        place.leaf = home;
        place.at = index_in(home, before) + 1;
        // At a leaf's end the place before the separator and the one after it are both right: take the one with room.
        if (after != nullptr && place.leaf->count == capacity && after->home_.certain()->is_leaf) {
          place.leaf = after->home_.certain();
          place.at = index_in(place.leaf, after);
        }
        return;
      }
    }
    // `before` went up to be a separator: the place is the beginning of the leaf after it, where `after` is.
    place.leaf = after->home_.certain();
    if (place.leaf->is_leaf) {
      place.at = index_in(place.leaf, after);
      return;
    }
    // `after` went up: the end of the leaf before it.
    Leaf* leaf = child_at(place.leaf, index_in(place.leaf, after));
    while (!leaf->is_leaf) {
      leaf = child_at(leaf, leaf->count);
    }
    place.leaf = leaf;
    place.at = leaf->count;
  }

  // After a removal: joins or balances nodes that have become too small, upwards.
  [[gnu::noinline]] void mend(Leaf* node) noexcept {
    for (;;) {
      Branch* const parent = node->parent.get();
      if (parent == nullptr) {
        shrink_root(node);
        return;
      }
      if (node->count >= least_count) {
        return;
      }
      const unsigned at = node->position == 0 ? 0 : node->position - 1u;
      Leaf* const left = parent->children[at].certain();
      Leaf* const right = parent->children[at + 1].certain();
      const unsigned together = left->count + right->count + 1u;
      if (together > capacity) {
        // Too many for one node: even out.
        if (left->count < right->count) {
          flow_left(parent, at, (right->count - left->count) / 2u);
        } else {
          flow_right(parent, at, (left->count - right->count) / 2u);
        }
        return;
      }
      put(left, left->count, parent->elements[at].certain());
      transfer(right, 0, left, left->count + 1u, right->count);
      if (!left->is_leaf) {
        move_children(static_cast<Branch*>(right), 0, static_cast<Branch*>(left), left->count + 1u, right->count + 1u);
      }
      left->count = static_cast<std::uint8_t>(together);
      shift(parent, at + 1, at, parent->count - at - 1u);
      move_children(parent, at + 2, parent, at + 1, parent->count - at - 1u);
      --parent->count;
      free_node(right);
      node = parent;
    }
  }

  void shrink_root(Leaf* root) noexcept {
    if (root->count != 0) {
      return;
    }
    Leaf* const child = child_at(root, 0);
    root_ = child != nullptr ? HomeLink(child) : HomeLink();
    if (child != nullptr) {
      child->parent = LinkTo<Branch>();
      child->position = 0;
    }
    free_node(root);
  }

  template <class Destroy>
  [[gnu::noinline]] static void clear_below(Leaf* node, Destroy& destroy) noexcept {
    for (unsigned i = 0; i < node->count; ++i) {
      if (!node->is_leaf) {
        clear_below(child_at(node, i), destroy);
      }
      destroy(node->elements[i].certain());
    }
    if (!node->is_leaf) {
      clear_below(child_at(node, node->count), destroy);
    }
    free_node(node);
  }

  static bool holds_below(const Leaf* node, unsigned level, const Element*& previous, std::size_t& count) {
    if (node->count == 0 || node->is_leaf != (level == 1)) {
      return false;
    }
    for (unsigned i = 0; i <= node->count; ++i) {
      if (!node->is_leaf) {
        const Leaf* const child = child_at(node, i);
        if (static_cast<const Leaf*>(child->parent.get()) != node || child->position != i ||
            !holds_below(child, level - 1, previous, count)) {
          return false;
        }
      }
      if (i == node->count) {
        break;
      }
      const Element* const element = node->elements[i].certain();
      if (element->home_.certain() != node || (previous != nullptr && !Less()(previous->key(), element->key())) ||
          Less()(key_at(node, i), element->key()) || Less()(element->key(), key_at(node, i))) {
        return false;
      }
      previous = element;
      ++count;
    }
    return true;
  }

  HomeLink root_;
  std::size_t size_ = 0;
};

}  // namespace blockyard::container

#endif
