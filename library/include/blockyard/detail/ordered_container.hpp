/// What RBMap and RBSet have in common: the part of their B-tree that knows keys. It searches, enters and walks. How
/// nodes lie and are kept balanced is OrderedTree's (ordered_tree.hpp). Programs include rb_map.hpp or rb_set.hpp.
///
/// Where keys are small and trivially copyable, nodes hold copies of them, and where keys are ordered as bytes, 8 bytes
/// of each. A search touches one node a level, then the element. For other keys a comparison looks at the element.
#ifndef BLOCKYARD_DETAIL_ORDERED_CONTAINER_HPP
#define BLOCKYARD_DETAIL_ORDERED_CONTAINER_HPP

#include <algorithm>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <memory>
#include <new>
#include <string_view>
#include <type_traits>
#include <utility>

#include "blockyard/detail/nodes.hpp"
#include "blockyard/detail/on_throw.hpp"
#include "blockyard/detail/ordered_tree.hpp"
#include "blockyard/detail/sorted_numbers.hpp"
#include "blockyard/detail/standard_names.hpp"
#include "blockyard/hash.hpp"
#include "blockyard/node_blocks.hpp"
#include "blockyard/ordered_bytes.hpp"

namespace blockyard::container {

/// The default order of RBMap and RBSet.
struct LessDefault {
  template <class T>
  [[nodiscard]] bool operator()(const T& a, const T& b) const {
    return a < b;
  }
};

/// `Entry` is what elements hold: KeyValue<K, V>, or const K in a set.
template <class Derived, class K, class Entry, class Less, class A>
class OrderedContainer : public StandardNames<Derived> {
 public:
  class Element;

 protected:
  using Blocks = typename A::template For<Element>;

 private:
  static constexpr bool is_near = std::is_same_v<typename Blocks::template Link<void>, NearLink<void>>;
  using Links = std::conditional_t<is_near, NearLinks, FarLinks>;
  using Shape = std::conditional_t<is_near, NearShape, FarShape<OrderedContainer>>;
  friend Shape;
  using Tree = OrderedTree<Shape>;
  using Node = typename Tree::Node;

  static constexpr bool is_default = std::is_same_v<Less, LessDefault>;
  static constexpr bool has_words = is_default && HasOrderedBytes<K>;
  static constexpr bool copies_keys = !has_words && std::is_trivially_copyable_v<K> && sizeof(K) <= 8;
  static constexpr bool compares_numbers = copies_keys && is_default && std::is_arithmetic_v<K>;
  static constexpr bool compares_once = !copies_keys && is_default && std::three_way_comparable<K, std::weak_ordering>;

  /// What a node holds of a key: of a small number one of 4 bytes, which four comparisons at once are made for.
  using Held = std::conditional_t<has_words, std::uint64_t,
                                  std::conditional_t<compares_numbers && sizeof(K) < 4, std::int32_t, K>>;
  /// What a search compares, by a key or what stands for one.
  template <class Q>
  using Wanted = std::conditional_t<has_words, std::string_view, const Q&>;
  using Numbers = SortedNumbers<std::conditional_t<has_words || compares_numbers, Held, int>>;

 public:
  class Element : TreeElement<Links> {
   public:
    /// What leak reports call it.
    using ReportedAs = Derived;

    [[nodiscard]] const K& key() const noexcept {
      if constexpr (is_set) {
        return entry_;
      } else {
        return entry_.key;
      }
    }
    [[nodiscard]] auto& get() noexcept { return value_of(entry_); }
    [[nodiscard]] auto& get() const noexcept { return value_of(entry_); }
    [[nodiscard]] auto& value() noexcept { return value_of(entry_); }
    [[nodiscard]] auto& value() const noexcept { return value_of(entry_); }
    [[nodiscard]] auto& operator*() noexcept { return value_of(entry_); }
    [[nodiscard]] auto* operator->() noexcept { return std::addressof(value_of(entry_)); }
    [[nodiscard]] auto& key_value() noexcept { return entry_; }
    [[nodiscard]] auto& key_value() const noexcept { return entry_; }

    /// The neighbours in order, nullptr at the ends. O(1) amortised, and a search among at most 63 links.
    [[nodiscard]] Element* next() noexcept { return next_of(this, unsigned{unknown}); }
    [[nodiscard]] const Element* next() const noexcept { return next_of(this, unsigned{unknown}); }
    [[nodiscard]] Element* prev() noexcept { return previous_of(this, unsigned{unknown}); }
    [[nodiscard]] const Element* prev() const noexcept { return previous_of(this, unsigned{unknown}); }

   private:
    friend class OrderedContainer;
    friend Nodes;
    static constexpr bool is_set = std::is_same_v<Entry, const K>;

    template <class... Arguments>
    explicit Element(Arguments&&... arguments) : entry_(std::forward<Arguments>(arguments)...) {}
    template <class E>
    static auto& value_of(E& entry) noexcept {
      if constexpr (is_set) {
        return entry;
      } else {
        return entry.value;
      }
    }

    Entry entry_;
  };

  // An iterator remembers where in its tree node its element is, as a rule.
  using Iterator = NodeIterator<OrderedContainer, OrderedContainer, Element, Entry, unsigned>;
  using ConstIterator = NodeIterator<OrderedContainer, OrderedContainer, const Element, const Entry, unsigned>;
  using iterator = Iterator;
  using const_iterator = ConstIterator;
  using value_type = std::remove_const_t<Entry>;

  /// What a BlockAllocator for the elements must fit.
  static constexpr std::size_t block_bytes() { return sizeof(Element); }
  static constexpr std::size_t block_alignment() { return alignof(Element); }

  constexpr OrderedContainer() noexcept = default;
  /// Takes its elements from `blocks` (DirectBlocks: a BlockAllocator&).
  explicit OrderedContainer(Blocks blocks) noexcept : blocks_(std::move(blocks)) {}
  /// With a comparator that has state.
  explicit OrderedContainer(Less less, Blocks blocks = Blocks()) noexcept
      : less_(std::move(less)), blocks_(std::move(blocks)) {}
  // Delegates, so that what has been copied ends when a further copy throws.
  OrderedContainer(const OrderedContainer& other) : OrderedContainer(other.less_, other.blocks_.for_copy()) {
    for (const Element* element = other.front(); element != nullptr; element = element->next()) {
      find_or_add(element->key(), *element);
    }
  }
  OrderedContainer(OrderedContainer&& other) noexcept
      : root_(std::exchange(other.root_, {})),
        changes_(other.changes_++),
        size_(std::exchange(other.size_, 0)),
        less_(other.less_),
        blocks_(std::move(other.blocks_)) {}
  OrderedContainer& operator=(const OrderedContainer& other) {
    return this == &other ? *this : (*this = OrderedContainer(other));
  }
  OrderedContainer& operator=(OrderedContainer&& other) noexcept {
    OrderedContainer taken(std::move(other));
    swap(taken);
    return *this;
  }
  ~OrderedContainer() { clear(); }

  void swap(OrderedContainer& other) noexcept {
    std::swap(root_, other.root_);
    std::swap(size_, other.size_);
    changes_ = other.changes_ = std::max(changes_, other.changes_) + 1;
    std::swap(less_, other.less_);
    blocks_.swap(other.blocks_);
  }
  friend void swap(Derived& a, Derived& b) noexcept { a.swap(b); }

  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  [[nodiscard]] bool is_empty() const noexcept { return size_ == 0; }

  /// The element of a key, nullptr if it is not there.
  // Even where the key does not share what all keys share: then no element is equal, whatever way the search takes.
  [[nodiscard]] const Element* find(const K& key) const { return find_wanted<K>(wanted(key)); }
  [[nodiscard]] Element* find(const K& key) { return find_wanted<K>(wanted(key)); }
  [[nodiscard]] bool has(const K& key) const { return find(key) != nullptr; }
  [[nodiscard]] bool contains(const K& key) const { return find(key) != nullptr; }
  /// The first element whose key is not less than `key`, nullptr if none.
  [[nodiscard]] const Element* lower_bound(const K& key) const { return lower_wanted<K>(wanted(key)); }
  [[nodiscard]] Element* lower_bound(const K& key) { return lower_wanted<K>(wanted(key)); }
  /// The last element whose key is not greater than `key`, nullptr if none.
  [[nodiscard]] const Element* find_closest(const K& key) const { return closest_wanted<K>(wanted(key)); }
  [[nodiscard]] Element* find_closest(const K& key) { return closest_wanted<K>(wanted(key)); }
  /// The first element whose key is greater than `key`, nullptr if none.
  [[nodiscard]] const Element* upper_bound(const K& key) const { return upper_wanted<K>(wanted(key)); }
  [[nodiscard]] Element* upper_bound(const K& key) { return upper_wanted<K>(wanted(key)); }

  // The same by what stands for a key, without making one: for a string, and for what a comparator with
  // `is_transparent` takes beside a key, if one key at most is equal to it.
  template <class Q>
  static constexpr bool stands_for_key =
      !std::is_same_v<Q, K> && ((has_words && std::is_convertible_v<const Q&, std::string_view> &&
                                 std::is_convertible_v<const K&, std::string_view>) ||
                                requires { typename Less::is_transparent; });
  template <class Q>
  requires stands_for_key<Q>
  [[nodiscard]] const Element* find(const Q& key) const { return find_wanted<Q>(key); }
  template <class Q>
  requires stands_for_key<Q>
  [[nodiscard]] Element* find(const Q& key) { return find_wanted<Q>(key); }
  template <class Q>
  requires stands_for_key<Q>
  [[nodiscard]] bool has(const Q& key) const { return find(key) != nullptr; }
  template <class Q>
  requires stands_for_key<Q>
  [[nodiscard]] bool contains(const Q& key) const { return find(key) != nullptr; }
  template <class Q>
  requires stands_for_key<Q>
  [[nodiscard]] const Element* lower_bound(const Q& key) const { return lower_wanted<Q>(key); }
  template <class Q>
  requires stands_for_key<Q>
  [[nodiscard]] Element* lower_bound(const Q& key) { return lower_wanted<Q>(key); }
  template <class Q>
  requires stands_for_key<Q>
  [[nodiscard]] const Element* find_closest(const Q& key) const { return closest_wanted<Q>(key); }
  template <class Q>
  requires stands_for_key<Q>
  [[nodiscard]] Element* find_closest(const Q& key) { return closest_wanted<Q>(key); }
  template <class Q>
  requires stands_for_key<Q>
  [[nodiscard]] const Element* upper_bound(const Q& key) const { return upper_wanted<Q>(key); }
  template <class Q>
  requires stands_for_key<Q>
  [[nodiscard]] Element* upper_bound(const Q& key) { return upper_wanted<Q>(key); }
  /// Removes what is equal to `key`; whether there was one.
  template <class Q>
  requires(stands_for_key<Q> && !std::is_convertible_v<const Q&, ConstIterator> &&
           !NamesElement<Q, Element, K>) bool erase(const Q& key) {
    Element* const found = find_wanted<Q>(key);
    erase(found);
    return found != nullptr;
  }

  /// Removes and destroys an element of this container. nullptr is a no-op.
  template <NamesElement<Element, K> E>
  void erase(E named) noexcept {
    if (Element* const element = named; element != nullptr) {
      erase_at({place_in_home(element, unknown), element});
    }
  }
  /// Removes a key; whether it was there.
  bool erase(const K& key) {
    const Place place = place_of(key);
    if (place.found != nullptr) {
      erase_at(place);
    }
    return place.found != nullptr;
  }
  /// Removes the element of an iterator, which is not the end. An iterator to the next one.
  Iterator erase(const ConstIterator& at) noexcept {
    Element* const next = const_cast<Element*>(at.element())->next();
    remove(at);
    return {next, this};
  }
  /// Removes the element of an iterator; nothing happens at the end. The iterator is invalid afterwards.
  void remove(const ConstIterator& at) noexcept { erase(const_cast<Element*>(at.element())); }

  /// The first and the last element in order, nullptr when empty.
  [[nodiscard]] Element* front() noexcept { return element_at(Tree::end_of(shape<>, root_.get(), false)); }
  [[nodiscard]] const Element* front() const noexcept { return element_at(Tree::end_of(shape<>, root_.get(), false)); }
  [[nodiscard]] Element* back() noexcept { return element_at(Tree::end_of(shape<>, root_.get(), true)); }
  [[nodiscard]] const Element* back() const noexcept { return element_at(Tree::end_of(shape<>, root_.get(), true)); }

  [[nodiscard]] Iterator begin() noexcept { return {front(), this}; }
  [[nodiscard]] Iterator end() noexcept { return {nullptr, this}; }
  [[nodiscard]] ConstIterator begin() const noexcept { return {front(), this}; }
  [[nodiscard]] ConstIterator end() const noexcept { return {nullptr, this}; }

  void clear() noexcept {
    if constexpr (Blocks::can_reset) {
      if (blocks_.is_own()) {
        clear_tree<!std::is_trivially_destructible_v<Element>>([](Element* element) { std::destroy_at(element); });
        blocks_.reset();
        return;
      }
    }
    if constexpr (forgets_nodes<Blocks> && std::is_trivially_destructible_v<Entry>) {
      clear_tree<false>([](Element*) {});
    } else {
      clear_tree<true>([this](Element* element) { end_element(element); });
    }
  }

  /// Gives unused pages of an allocator of the container's own back. O(its slabs).
  void shrink_to_fit() noexcept {
    if constexpr (Blocks::can_reset) {
      blocks_.trim();
    }
  }

  /// Bytes of elements and tree. O(size).
  [[nodiscard]] std::size_t memory_bytes() const noexcept {
    return size_ * block::stride_of(sizeof(Element), alignof(Element)) + Tree::bytes_below(shape<>, root_.get());
  }

  /// Whether both have equal elements. O(size).
  friend bool operator==(const Derived& a, const Derived& b) requires std::equality_comparable<value_type> {
    return a.size() == b.size() && std::equal(a.begin(), a.end(), b.begin());
  }

  /// Levels of the tree; 0 when empty.
  [[nodiscard]] int calculate_depth() const noexcept { return root_ ? root_.get_unchecked()->level + 1 : 0; }

  /// Order, counts, homes, parents, padding and words: for tests. O(size).
  [[nodiscard]] bool invariants_hold() const {
    std::size_t count = 0;
    const Element* previous = nullptr;
    const Node* const root = root_.get();
    return root == nullptr ? size_ == 0
                           : !root->parent && holds_below(root, root->level, previous, count) && count == size_;
  }

 protected:
  [[nodiscard]] Blocks blocks_for_copy() const noexcept { return blocks_.for_copy(); }

  /// Where a key is, or else the leaf that it would go to; no node in an empty container.
  struct Place : Tree::Place {
    Element* found = nullptr;  ///< the element that has the key
  };
  [[nodiscard, gnu::noinline]] Place place_of(const K& key) const {
    if (const int side = outside(wanted(key)); side != 0) {
      Place place{Tree::end_of(shape<>, root_.get(), side > 0)};
      place.at += side > 0 ? 1 : 0;
      return place;
    }
    Place place;
    descend<K, true>(wanted(key), [&](Node* node, Spot spot) {
      place = {{node, spot.at}, spot.is_equal ? element_at(node, spot.at) : nullptr};
      return spot.is_equal;
    });
    return place;
  }

  /// Makes an element of `arguments` and enters it where place_of() said. Its constructors may use this container: if
  /// they change it, the place is looked for again, and if they added the key, `meet(there, made)` is called, and what
  /// was there is returned.
  template <class Meet, class... Arguments>
  [[gnu::noinline]] Element* add(Place& place, Meet&& meet, Arguments&&... arguments) {
    const std::uint32_t changes = changes_;
    Element* const element = Nodes::make<Element>(blocks_, std::forward<Arguments>(arguments)...);
    if (changes != changes_) [[unlikely]] {
      block::OnThrow unless_free([&] { end_element(element); });
      place = place_of(element->key());
      if (place.found != nullptr) {
        meet(place.found, element);
        return place.found;
      }
      unless_free.done();
    }
    ++changes_;
    if (place.node == nullptr || place.node->count == capacity) [[unlikely]] {
      block::OnThrow on_throw([&] { end_element(element); });
      Tree::make_room(shape<>, root_, place);
      on_throw.done();
    }
    if constexpr (has_words) {
      if (outside(wanted(element->key())) != 0) [[unlikely]] {
        const std::string_view any = bytes_of_key(base_of(element_at(root_.get(), 0)));
        Tree::share_less(shape<>, root_.get(), shared_bytes(any, wanted(element->key())));
      }
    }
    if (!has_words && place.at == place.node->count) {
      Tree::put(shape<>, place, base_of(element));
    } else {
      Tree::enter(shape<>, place, base_of(element));
    }
    if constexpr (copies_keys) {
      const Held& held = static_cast<const Held&>(element->key());
      std::memcpy(Tree::keys_of(shape<>, place.node) + place.at * sizeof held, std::addressof(held), sizeof held);
    }
    ++size_;
    return element;
  }

  /// The element of a key, made of `arguments` if it is not there.
  template <class... Arguments>
  Element* find_or_add(const K& key, Arguments&&... arguments) {
    Place place = place_of(key);
    const auto keep = [](Element*, Element*) {};
    return place.found != nullptr ? place.found : add(place, keep, std::forward<Arguments>(arguments)...);
  }
  /// The same; whether the element is new.
  template <class... Arguments>
  std::pair<Element*, bool> emplaced(const K& key, Arguments&&... arguments) {
    const std::size_t before = size_;
    Element* const element = find_or_add(key, std::forward<Arguments>(arguments)...);
    return {element, size_ != before};
  }

 private:
  template <class, class, class, class, class>
  friend class NodeIterator;

  static constexpr std::uint32_t key_bytes = has_words || copies_keys ? sizeof(Held) : 0;
  static constexpr unsigned prefetch_distance = 9;
  static constexpr unsigned unknown = ~0u;

  template <class Q>
  Element* find_wanted(Wanted<Q> key) const {
    Element* found = nullptr;
    descend<Q>(key, [&](Node* node, Spot spot) {
      found = spot.is_equal ? element_at(node, spot.at) : nullptr;
      return spot.is_equal;
    });
    return found;
  }
  template <class Q>
  Element* lower_wanted(Wanted<Q> key) const {
    if (const int side = outside(key); side != 0) {
      return side < 0 ? element_at(Tree::end_of(shape<>, root_.get(), false)) : nullptr;
    }
    Element* found = nullptr;
    descend<Q>(key, [&](Node* node, Spot spot) {
      found = spot.at < node->count ? element_at(node, spot.at) : found;
      return spot.is_equal;
    });
    return found;
  }
  template <class Q>
  Element* closest_wanted(Wanted<Q> key) const {
    if (const int side = outside(key); side != 0) {
      return side < 0 ? nullptr : last_node();
    }
    Element* found = nullptr;
    descend<Q>(key, [&](Node* node, Spot spot) {
      if (spot.is_equal || spot.at != 0) {
        found = element_at(node, spot.is_equal ? spot.at : spot.at - 1);
      }
      return spot.is_equal;
    });
    return found;
  }
  template <class Q>
  Element* upper_wanted(Wanted<Q> key) const {
    Element* const closest = closest_wanted<Q>(key);
    return closest == nullptr ? element_at(Tree::end_of(shape<>, root_.get(), false)) : closest->next();
  }

  static std::string_view bytes_of_key(const void* element) noexcept {
    return wanted(static_cast<const Element*>(static_cast<const TreeElement<Links>*>(element))->key());
  }

  static constexpr TreeShape shape_of(std::uint32_t elements) {
    const auto align = [](std::size_t at, std::size_t to) {
      return static_cast<std::uint32_t>((at + to - 1) / to * to);
    };
    TreeShape made{};
    std::size_t alignment = copies_keys ? alignof(K) : 1;
    if constexpr (has_words || compares_numbers) {
      // A slot more than elements, or several: the search may end behind the last key.
      made.key_slots = static_cast<std::uint32_t>((elements / Numbers::window + 1) * Numbers::window);
      made.padding = Numbers::padding();
      alignment = Numbers::alignment;
    }
    if constexpr (has_words) {
      made.bytes_of_key = bytes_of_key;
    }
    made.capacity = elements;
    made.key_bytes = key_bytes;
    made.elements = sizeof(Node);
    made.keys = align(made.elements + elements * sizeof(typename Tree::Raw), alignment);
    alignment = std::max(alignment, alignof(Node));
    made.children = align(made.keys + std::max(made.key_slots, elements) * key_bytes, alignment);
    made.branch_bytes = align(made.children + (elements + 1) * sizeof(typename Tree::NodeLink), alignment);
    return made;
  }
  /// Elements of a node. With 512 bytes of leaf, insertion and walks were faster than with 384 or less and as fast as
  /// with 1024; branches of twice as many elements were slower.
  static constexpr std::uint32_t fitting_capacity() {
    std::uint32_t most = 63;
    while (shape_of(most).children > 512) {
      --most;
    }
    return most;
  }
  static constexpr std::uint32_t capacity = fitting_capacity();
  static constexpr TreeShape layout = shape_of(capacity);
  // A function, and a template: Element is incomplete where the container is declared.
  static constexpr unsigned element_shift() {
    return block::near_shift_of(block::stride_of(sizeof(Element), alignof(Element)));
  }
  template <class = void>
  static constexpr Shape shape = [] {
    Shape made{};
    if constexpr (is_near) {
      static_cast<TreeShape&>(made) = layout;
      made.element_shift = element_shift();
    }
    return made;
  }();

  static const Held* held_in(const Node* node) noexcept {
    return reinterpret_cast<const Held*>(Tree::keys_of(shape<>, node));
  }
  static Wanted<K> wanted(const K& key) noexcept {
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
    return static_cast<Element*>(Tree::element_at(shape<>, node, at));
  }
  static Element* element_at(typename Tree::Place place) noexcept {
    return place.node == nullptr ? nullptr : element_at(place.node, place.at);
  }
  static TreeElement<Links>* base_of(const Element* element) noexcept { return const_cast<Element*>(element); }
  // Where an element is: at `hint`, or it is looked for.
  static typename Tree::Place place_in_home(const Element* element, unsigned hint) noexcept {
    Node* const node = base_of(element)->home.get_unchecked();
    const bool there = hint < node->count && element_at(node, hint) == element;
    return {node, there ? hint : Tree::index_in(shape<>, node, base_of(element))};
  }

  /// How many keys of a node are less, and whether the next one is equal.
  struct Spot {
    unsigned at;
    bool is_equal;
  };

  // Calls `visit(node, spot)` for the nodes from the root to a leaf, until it returns true. The root says how many
  // levels there are.
  template <class Q, bool enters = false, class Visit>
  [[gnu::always_inline]] void descend(Wanted<Q> key, Visit&& visit) const {
    Node* node = root_.get();
    if (node == nullptr) {
      return;
    }
    for (unsigned level = node->level;; --level) {
      const Spot spot = search<Q, enters>(node, key);
      if (visit(node, spot) || level == 0) {
        return;
      }
      node = Tree::child_at(shape<>, node, spot.at);
      if constexpr (key_bytes != 0) {
        // The search would wait for one line after the other, and at its end for the link's.
        for (std::size_t line = 0; line < layout.children; line += 64) {
          __builtin_prefetch(Tree::bytes_of(node) + line);
        }
      }
    }
  }

  // Without branches that depend on keys: a mispredicted one costs more than the comparisons. Only where the keys
  // themselves must be looked at, which may take a cache miss each, a search ends as soon as it can.
  template <class Q, bool enters>
  Spot search(const Node* node, Wanted<Q> key) const {
    if constexpr (enters && compares_numbers) {
      // What is entered is often entered in order.
      if (key_at(node, node->count - 1u) < key) {
        return {node->count, false};
      }
    }
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
          at += half & (0u - static_cast<unsigned>(less_(key_at(node, at + half - 1), key)));
          count -= half;
        }
      }
      return {at, at < node->count && !less_(key, key_at(node, at))};
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
  template <class Q>
  int outside(const Q& key) const noexcept {
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

  // The neighbours of an element, nullptr at the ends. `hint` is where in its home the element may be, and becomes
  // where the neighbour is: an iteration that keeps it looks for nothing.
  template <class Hint>
  static Element* next_of(const Element* element, Hint&& hint) noexcept {
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
    place = Tree::neighbour(shape<>, place, true);
    hint = place.at;
    return element_at(place);
  }
  template <class Hint>
  static Element* previous_of(const Element* element, Hint&& hint) noexcept {
    typename Tree::Place place = place_in_home(element, hint);
    if (place.node->level == 0 && place.at != 0) {
      --place.at;
    } else {
      place = Tree::neighbour(shape<>, place, false);
    }
    hint = place.at;
    return element_at(place);
  }
  template <class E>
  static auto& value_of(E* element) noexcept {
    return element->key_value();
  }
  Element* last_node() const noexcept { return const_cast<OrderedContainer*>(this)->back(); }

  // Gives all tree nodes back, and calls `end(element)` for each element, in order. Where that `touches` elements, they
  // are fetched ahead: the order of keys is none in memory.
  template <bool touches, class End>
  void clear_tree(End&& end) noexcept {
    Node* const root = std::exchange(root_, {}).get();
    size_ = 0;
    ++changes_;
    if (root != nullptr) {
      const auto visit = [](void* context, typename Tree::Place place, unsigned count) {
        for (unsigned i = 0; i < count; ++i) {
          if constexpr (touches) {
            const unsigned ahead = place.at + i + prefetch_distance;
            __builtin_prefetch(element_at(place.node, ahead < place.node->count ? ahead : place.at + i), 1);
          }
          (*static_cast<std::remove_reference_t<End>*>(context))(element_at(place.node, place.at + i));
        }
      };
      Tree::clear(shape<>, root, visit, std::addressof(end));
    }
  }

  [[gnu::noinline]] void erase_at(const Place& place) noexcept {
    Tree::erase(shape<>, root_, place);
    --size_;
    ++changes_;
    end_element(place.found);
  }

  // Out of line: what is erased has been searched for.
  [[gnu::noinline]] void end_element(Element* element) noexcept { Nodes::end(blocks_, element); }

  // Whether the places of keys hold copies or words of them, and behind the last key padding.
  bool keys_hold(const Node* node) const {
    if constexpr (layout.key_slots != 0) {
      for (unsigned i = node->count; i < layout.key_slots; ++i) {
        if (std::memcmp(held_in(node) + i, &layout.padding, sizeof(Held)) != 0) {
          return false;
        }
      }
    }
    for (unsigned i = 0; i < node->count; ++i) {
      const Element* const element = element_at(node, i);
      if constexpr (has_words) {
        if (held_in(node)[i] != word_at(wanted(element->key()), node->skip)) {
          return false;
        }
      }
      if (less_(key_at(node, i), element->key()) || less_(element->key(), key_at(node, i))) {
        return false;
      }
    }
    return !has_words || node->skip <= Tree::shared_below(shape<>, node);
  }
  bool holds_below(const Node* node, unsigned level, const Element*& previous, std::size_t& count) const {
    if (node->count == 0 || node->level != level || !keys_hold(node)) {
      return false;
    }
    for (unsigned i = 0; i <= node->count; ++i) {
      if (level != 0) {
        const Node* const child = Tree::child_at(shape<>, node, i);
        if (child->parent.get() != node || !holds_below(child, level - 1, previous, count)) {
          return false;
        }
      }
      if (i != node->count) {
        const Element* const element = element_at(node, i);
        if (base_of(element)->home.get_unchecked() != node ||
            (previous != nullptr && !less_(previous->key(), element->key()))) {
          return false;
        }
        previous = element;
        ++count;
      }
    }
    return true;
  }

  typename Tree::NodeLink root_;
  std::uint32_t changes_ = 0;  ///< what a constructor that uses the container increases
  std::size_t size_ = 0;
  [[no_unique_address]] Less less_{};
  [[no_unique_address]] Blocks blocks_;
};

}  // namespace blockyard::container

#endif
