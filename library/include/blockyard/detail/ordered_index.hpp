/// OrderedIndex: the B-tree that stands under RBMap and RBSet. Inside of rb_map.hpp and rb_set.hpp.
///
/// This is the part that knows keys: it searches (numbers as sorted_numbers.hpp says), enters and walks. How nodes lie
/// and are kept balanced is OrderedTree's (ordered_tree.hpp). Where keys are small and trivially copyable, nodes hold
/// copies of them, and where keys are ordered as bytes, 8 bytes of each. So a search touches one node a level and then
/// the element. For other keys a comparison looks at the element.
///
/// Bounds: find, insert and erase O(log size): three levels hold 200 000 elements. A full node first fills its
/// neighbours up and is split only when these are full too, which keeps nodes about four fifths full under random
/// insertion; ascending insertion fills them wholly; after erasures a node is at least a quarter full.
///
/// Source: R. Bayer, E. McCreight, "Organization and Maintenance of Large Ordered Indices", 1972; filling neighbours:
/// D. Knuth's B*-tree; what the keys of a node share: R. Bayer, K. Unterauer, "Prefix B-Trees", 1977.
#ifndef BLOCKYARD_DETAIL_ORDERED_INDEX_HPP
#define BLOCKYARD_DETAIL_ORDERED_INDEX_HPP

#include <compare>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string_view>
#include <type_traits>
#include <utility>

#include "blockyard/detail/ordered_tree.hpp"
#include "blockyard/detail/sorted_numbers.hpp"
#include "blockyard/ordered_bytes.hpp"

namespace blockyard::container {

/// The default order of RBMap and RBSet.
struct LessDefault {
  template <class T>
  [[nodiscard]] bool operator()(const T& a, const T& b) const {
    return a < b;
  }
};

/// `Element` has key() and the base TreeElement<Links>, at its begin; `Links` is NearLinks or FarLinks.
template <class Element, class K, class Less, class Links>
class OrderedIndex {
  static constexpr bool is_near = std::is_same_v<Links, NearLinks>;
  static constexpr bool is_default = std::is_same_v<Less, LessDefault>;
  static constexpr bool has_words = is_default && HasOrderedBytes<K>;
  static constexpr bool copies_keys = !has_words && std::is_trivially_copyable_v<K> && sizeof(K) <= 8;
  static constexpr bool compares_numbers = copies_keys && is_default && std::is_arithmetic_v<K>;
  static constexpr bool compares_once = !copies_keys && is_default && std::three_way_comparable<K, std::weak_ordering>;

  /// What a node holds of a key: of a small number one of 4 bytes, which four comparisons at once are made for.
  using Held = std::conditional_t<has_words, std::uint64_t,
                                  std::conditional_t<compares_numbers && sizeof(K) < 4, std::int32_t, K>>;
  /// What a search compares.
  using Wanted = std::conditional_t<has_words, std::string_view, const K&>;

  using Raw = typename Links::Raw;
  using Node = TreeNode<Links>;
  using NodeLink = typename Links::template Link<Node>;

  static constexpr std::size_t key_bytes = has_words || copies_keys ? sizeof(Held) : 0;
  using Numbers = SortedNumbers<std::conditional_t<has_words || compares_numbers, Held, int>>;

  static std::string_view bytes_of_key(const void* element) noexcept {
    return wanted(static_cast<const Element*>(static_cast<const TreeElement<Links>*>(element))->key());
  }
  static constexpr KeyBytes bytes_function() {
    if constexpr (has_words) {
      return bytes_of_key;
    } else {
      return nullptr;
    }
  }

  static constexpr TreeShape shape_of(std::size_t elements) {
    if constexpr (has_words || compares_numbers) {
      // A slot more than elements, or several: the search may end behind the last key.
      const std::size_t slots = (elements / Numbers::window + 1) * Numbers::window;
      return TreeShape::of(sizeof(Node), sizeof(Raw), elements, key_bytes, Numbers::alignment, slots,
                           Numbers::padding(), bytes_function());
    } else {
      return TreeShape::of(sizeof(Node), sizeof(Raw), elements, key_bytes, copies_keys ? alignof(K) : 1, 0, 0, nullptr);
    }
  }
  /// Elements of a node. With 512 bytes of leaf, insertion and walks were faster than with 384 or less and as fast as
  /// with 1024; branches of twice as many elements were slower.
  static constexpr std::size_t fitting_capacity() {
    std::size_t most = 63;
    while (shape_of(most).leaf_bytes > 512) {
      --most;
    }
    return most;
  }
  static constexpr std::size_t capacity = fitting_capacity();
  static constexpr TreeShape layout = shape_of(capacity);
  using Shape = std::conditional_t<is_near, NearShape, FarShape<OrderedIndex>>;
  friend Shape;
  using Tree = OrderedTree<Shape>;

  // A function: Element is incomplete where an index is declared.
  static constexpr unsigned element_shift() {
    return block::near_shift_of(block::stride_of(sizeof(Element), alignof(Element)));
  }
  static constexpr Shape make_shape() {
    Shape shape{};
    if constexpr (is_near) {
      static_cast<TreeShape&>(shape) = layout;
      shape.element_shift = element_shift();
    }
    return shape;
  }
  template <class S>
  struct Shaped {
    static constexpr S shape = make_shape();
  };

 public:
  constexpr OrderedIndex() = default;
  OrderedIndex(const OrderedIndex&) = delete;
  OrderedIndex& operator=(const OrderedIndex&) = delete;

  void swap(OrderedIndex& other) noexcept {
    std::swap(root_, other.root_);
    std::swap(size_, other.size_);
  }

  [[nodiscard]] std::size_t size() const noexcept { return size_; }

  // Even where the key does not share what all keys share: then no element is equal, whatever way the search takes.
  [[nodiscard]] Element* find(const K& key) const {
    Element* found = nullptr;
    descend(wanted(key), [&](Node* node, Spot spot) {
      found = spot.is_equal ? element_at(node, spot.at) : nullptr;
      return spot.is_equal;
    });
    return found;
  }

  /// The first element whose key is not less than `key`; nullptr if none.
  [[nodiscard]] Element* lower_bound(const K& key) const {
    if (const int side = outside(wanted(key)); side != 0) {
      return side < 0 ? first() : nullptr;
    }
    Element* found = nullptr;
    descend(wanted(key), [&](Node* node, Spot spot) {
      if (spot.at < node->count) {
        found = element_at(node, spot.at);
      }
      return spot.is_equal;
    });
    return found;
  }

  /// The last element whose key is not greater than `key`; nullptr if none.
  [[nodiscard]] Element* closest(const K& key) const {
    if (const int side = outside(wanted(key)); side != 0) {
      return side < 0 ? nullptr : last();
    }
    Element* found = nullptr;
    descend(wanted(key), [&](Node* node, Spot spot) {
      if (spot.is_equal || spot.at != 0) {
        found = element_at(node, spot.is_equal ? spot.at : spot.at - 1);
      }
      return spot.is_equal;
    });
    return found;
  }

  /// Where a key is, or else the leaf that it would go to; no node in an empty index.
  struct Place : Tree::Place {
    Element* found = nullptr;  ///< the element that has the key
  };
  [[nodiscard, gnu::noinline]] Place place_of(const K& key) const {
    Place place;
    if (const int side = outside(wanted(key)); side != 0) {
      static_cast<typename Tree::Place&>(place) =
          side < 0 ? Tree::first(Shaped<Shape>::shape, root_.get()) : Tree::last(Shaped<Shape>::shape, root_.get());
      place.at += side < 0 ? 0 : 1;
      return place;
    }
    descend(wanted(key), [&](Node* node, Spot spot) {
      place.node = node;
      place.at = spot.at;
      place.found = spot.is_equal ? element_at(node, spot.at) : nullptr;
      return spot.is_equal;
    });
    return place;
  }

  /// Makes room for one more at `place`, which may change it. Throws std::bad_alloc; the elements are as before then.
  void make_room(Place& place) {
    if (place.node == nullptr || place.node->count == capacity) [[unlikely]] {
      Tree::make_room(Shaped<Shape>::shape, root_, place);
    }
  }

  /// Enters an element at a place with room.
  void insert(const Place& place, Element* element) noexcept {
    if constexpr (has_words) {
      if (outside(wanted(element->key())) != 0) [[unlikely]] {
        const std::string_view any = bytes_of_key(base_of(element_at(root_.get(), 0)));
        Tree::share_less(Shaped<Shape>::shape, root_.get(), shared_bytes(any, wanted(element->key())));
      }
    }
    Tree::enter(Shaped<Shape>::shape, place, base_of(element));
    if constexpr (copies_keys) {
      const Held& held = static_cast<const Held&>(element->key());
      std::memcpy(bytes_of(place.node) + layout.keys + place.at * sizeof held, std::addressof(held), sizeof held);
    }
    ++size_;
  }

  /// Where an element is. O(1), and a search among at most 63 links.
  [[nodiscard]] static Place place_of(Element* element) noexcept { return {place_in_home(element, ~0u), element}; }

  /// Takes out the element at a place; it is the caller's then.
  void erase(const Place& place) noexcept {
    Tree::erase(Shaped<Shape>::shape, root_, place);
    --size_;
  }

  [[nodiscard]] Element* first() const noexcept { return element_at(Tree::first(Shaped<Shape>::shape, root_.get())); }
  [[nodiscard]] Element* last() const noexcept { return element_at(Tree::last(Shaped<Shape>::shape, root_.get())); }

  /// The neighbours of an element, nullptr at the ends. `hint` is where in its home the element may be, and becomes
  /// where the neighbour is: an iteration that keeps it looks for nothing.
  [[nodiscard]] static Element* next(const Element* element, unsigned& hint) noexcept {
    typename Tree::Place place = place_in_home(element, hint);
    const Node* const node = place.node;
    if (node->level == 0 && place.at + 1 < node->count) {
      // Elements lie in the order of their insertion: what comes soon is fetched before it is asked for.
      if (place.at + prefetch_distance < node->count) {
        __builtin_prefetch(element_at(node, place.at + prefetch_distance));
      }
      hint = place.at + 1;
      return element_at(node, hint);
    }
    place = Tree::after(Shaped<Shape>::shape, place);
    hint = place.at;
    return element_at(place);
  }
  [[nodiscard]] static Element* previous(const Element* element, unsigned& hint) noexcept {
    typename Tree::Place place = place_in_home(element, hint);
    if (place.node->level == 0 && place.at != 0) {
      hint = place.at - 1;
      return element_at(place.node, hint);
    }
    place = Tree::before(Shaped<Shape>::shape, place);
    hint = place.at;
    return element_at(place);
  }

  /// Gives all tree nodes back, and calls `destroy(element)` for each element, in order. Where that `touches` elements,
  /// they are fetched ahead: the order of keys is none in memory.
  template <bool touches, class Destroy>
  void clear(Destroy&& destroy) noexcept {
    Node* const root = root_.get();
    root_ = NodeLink();
    size_ = 0;
    if (root != nullptr) {
      Tree::clear(
          Shaped<Shape>::shape, root,
          [](void* context, typename Tree::Place place, unsigned count) {
            for (unsigned i = 0; i < count; ++i) {
              if constexpr (touches) {
                const unsigned ahead = place.at + i + prefetch_distance;
                __builtin_prefetch(element_at(place.node, ahead < place.node->count ? ahead : place.at + i), 1);
              }
              (*static_cast<std::remove_reference_t<Destroy>*>(context))(element_at(place.node, place.at + i));
            }
          },
          std::addressof(destroy));
    }
  }

  /// Levels of the tree; 0 when empty.
  [[nodiscard]] unsigned depth() const noexcept { return root_ ? root_.get_unchecked()->level + 1u : 0; }

  /// Order, counts, homes, parents, padding and words: for tests. O(size).
  [[nodiscard]] bool invariants_hold() const {
    std::size_t count = 0;
    const Element* previous = nullptr;
    const Node* const root = root_.get();
    if (root == nullptr) {
      return size_ == 0;
    }
    return !root->parent && holds_below(root, depth(), previous, count) && count == size_;
  }

 private:
  static constexpr unsigned prefetch_distance = 9;

  static std::byte* bytes_of(const Node* node) noexcept {
    return reinterpret_cast<std::byte*>(const_cast<Node*>(node));
  }
  static const Held* held_in(const Node* node) noexcept {
    return reinterpret_cast<const Held*>(bytes_of(node) + layout.keys);
  }
  static Wanted wanted(const K& key) noexcept {
    if constexpr (has_words) {
      return OrderedBytes<K>::of(key);
    } else {
      return key;
    }
  }
  static std::conditional_t<compares_numbers, K, const K&> key_at(const Node* node, unsigned at) noexcept {
    if constexpr (copies_keys) {
      return static_cast<std::conditional_t<compares_numbers, K, const K&>>(held_in(node)[at]);
    } else {
      return element_at(node, at)->key();
    }
  }
  static Element* element_at(const Node* node, unsigned at) noexcept {
    const Raw link = Tree::elements_of(Shaped<Shape>::shape, node)[at];
    void* target;
    if constexpr (is_near) {
      target = block::near_target(link, element_shift());
    } else {
      target = link;
    }
    return static_cast<Element*>(static_cast<TreeElement<Links>*>(target));
  }
  static Element* element_at(typename Tree::Place place) noexcept {
    return place.node == nullptr ? nullptr : element_at(place.node, place.at);
  }
  static TreeElement<Links>* base_of(const Element* element) noexcept { return const_cast<Element*>(element); }
  static typename Tree::Place place_in_home(const Element* element, unsigned hint) noexcept {
    Node* const node = base_of(element)->home.get_unchecked();
    const bool there = hint < node->count && element_at(node, hint) == element;
    return {node, there ? hint : Tree::index_in(Shaped<Shape>::shape, node, base_of(element))};
  }

  /// How many keys of a node are less, and whether the next one is equal.
  struct Spot {
    unsigned at;
    bool is_equal;
  };

  // Calls `visit(node, spot)` for the nodes from the root to a leaf, until it returns true. The root says how many
  // levels there are.
  template <class Visit>
  [[gnu::always_inline]] void descend(Wanted key, Visit&& visit) const {
    Node* node = root_.get();
    if (node == nullptr) {
      return;
    }
    for (unsigned level = node->level;; --level) {
      const Spot spot = search(node, key);
      if (visit(node, spot) || level == 0) {
        return;
      }
      node = Tree::child_at(Shaped<Shape>::shape, node, spot.at);
      if constexpr (key_bytes != 0) {
        // The search would wait for one line after the other, and at its end for the link's.
        for (std::size_t line = 0; line < layout.leaf_bytes; line += 64) {
          __builtin_prefetch(bytes_of(node) + line);
        }
      }
    }
  }

  // Without branches that depend on keys: a mispredicted one costs more than the comparisons. Only where the keys
  // themselves must be looked at, which may take a cache miss each, a search ends as soon as it can.
  static Spot search(const Node* node, Wanted key) {
    if constexpr (has_words) {
      const std::uint64_t word = word_at(key, node->skip);
      const std::uint64_t* const words = held_in(node);
      const unsigned at = Numbers::template less_than<layout.key_slots>(words, word);
      if (at == node->count || words[at] != word) {
        return {at, false};
      }
      unsigned end = at + 1;
      while (end != node->count && words[end] == word) {
        ++end;
      }
      return halve(at, end, [&](unsigned i) { return key <=> bytes_of_key(base_of(element_at(node, i))); });
    } else if constexpr (compares_once) {
      return halve(0, node->count, [&](unsigned i) { return key <=> key_at(node, i); });
    } else {
      unsigned at = 0;
      if constexpr (compares_numbers) {
        at = Numbers::template less_than<layout.key_slots>(held_in(node), key);
      } else {
        for (unsigned count = node->count; count != 0;) {
          const unsigned half = (count + 1) / 2;
          at += half & (0u - static_cast<unsigned>(Less()(key_at(node, at + half - 1), key)));
          count -= half;
        }
      }
      return {at, at < node->count && !Less()(key, key_at(node, at))};
    }
  }

  // Halves the range of keys [at, end) with one comparison each.
  template <class Compare>
  static Spot halve(unsigned at, unsigned end, Compare&& compare) {
    while (at != end) {
      const unsigned middle = (at + end) / 2;
      const auto order = compare(middle);
      if (order == 0) {
        return {middle, true};
      }
      (order < 0 ? end : at) = middle + (order < 0 ? 0 : 1);
    }
    return {at, false};
  }

  // Whether a key lacks bytes that all keys share, and that no search compares. It comes before all, -1, or after, 1.
  int outside(Wanted key) const noexcept {
    if constexpr (has_words) {
      const Node* const root = root_.get();
      if (root != nullptr && root->skip != 0) {
        const std::string_view any = bytes_of_key(base_of(element_at(root, 0)));
        if (key.size() < root->skip || std::memcmp(key.data(), any.data(), root->skip) != 0) {
          return key < any ? -1 : 1;
        }
      }
    }
    return 0;
  }

  static bool padding_holds(const Node* node) {
    const std::uint64_t padding = layout.padding;
    for (std::size_t i = node->count; i < layout.key_slots; ++i) {
      if (std::memcmp(held_in(node) + i, &padding, sizeof(Held)) != 0) {
        return false;
      }
    }
    return true;
  }

  static bool words_hold(const Node* node) {
    if constexpr (has_words) {
      if (node->skip > Tree::shared_below(Shaped<Shape>::shape, node)) {
        return false;
      }
      for (unsigned i = 0; i < node->count; ++i) {
        if (held_in(node)[i] != word_at(wanted(element_at(node, i)->key()), node->skip)) {
          return false;
        }
      }
    }
    return true;
  }

  static bool holds_below(const Node* node, unsigned level, const Element*& previous, std::size_t& count) {
    if (node->count == 0 || node->level + 1u != level || !padding_holds(node) || !words_hold(node)) {
      return false;
    }
    for (unsigned i = 0; i <= node->count; ++i) {
      if (node->level != 0) {
        const Node* const child = Tree::child_at(Shaped<Shape>::shape, node, i);
        if (child->parent.get() != node || !holds_below(child, level - 1, previous, count)) {
          return false;
        }
      }
      if (i == node->count) {
        break;
      }
      const Element* const element = element_at(node, i);
      if (base_of(element)->home.get_unchecked() != node ||
          (previous != nullptr && !Less()(previous->key(), element->key())) ||
          Less()(key_at(node, i), element->key()) || Less()(element->key(), key_at(node, i))) {
        return false;
      }
      previous = element;
      ++count;
    }
    return true;
  }

  NodeLink root_;
  std::size_t size_ = 0;
};

}  // namespace blockyard::container

#endif
