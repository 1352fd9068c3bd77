/// HashMap<K, V>: a hash table with the interface of Godot's HashMap. It keeps the order of insertion, and an entry's
/// address never changes.
///
/// Time: insert, find and erase take O(1) expected: as a rule one cache line of the table (detail/hash_table.hpp) and
/// the node. Growing the table takes O(size): it hashes all keys again. clear takes O(size + capacity). Iteration
/// follows the order of insertion, which is mostly the order in memory.
///
/// Memory: per entry a node of two 32-bit links, key and value (16 bytes for two ints), and 6.4 to 12.8 bytes of table:
/// 23 to 29 bytes for two ints. Up to 12 entries take 32, 48 or 64 bytes of table. The object is 24 bytes; DirectBlocks
/// add 8, number keys too. At most 2.6 * 10^9 entries.
///
/// Integers and enumerations with the default hasher and comparator that lie close together are neighbours in the table
/// too, which is faster when they are used in order.
///
/// Constructors and destructors of keys and values may use the map that they are put into or erased from, except as
/// node_blocks.hpp says of DirectBlocks. An entry is entered once it is made.
///
/// Hasher has a static hash(const K&) that returns an integer; Comparator a static compare(a, b) for equality. With
/// string keys and the defaults, look-ups take anything that converts to std::string_view and make no string; with a
/// Hasher and a Comparator that both have a type is_transparent, whatever these two take.
///
/// Exceptions: std::bad_alloc, and what keys, values, hasher and comparator throw. The map is then as before.
/// Thread-safety: as std::unordered_map. Iterators and pointers stay valid until their own entry is erased.
#ifndef BLOCKYARD_HASH_MAP_HPP
#define BLOCKYARD_HASH_MAP_HPP

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <iterator>
#include <memory>
#include <string_view>
#include <type_traits>
#include <utility>

#include "blockyard/detail/hash_table.hpp"
#include "blockyard/detail/nodes.hpp"
#include "blockyard/detail/standard_names.hpp"
#include "blockyard/hash.hpp"
#include "blockyard/node_blocks.hpp"

namespace blockyard {

template <class K, class V, class Hasher = HasherDefault, class Comparator = ComparatorDefault<K>,
          class A = StaticBlocks>
class HashMap : public container::StandardNames<HashMap<K, V, Hasher, Comparator, A>> {
  struct Node;
  using Blocks = typename A::template For<Node>;
  using NodeLink = typename Blocks::template Link<Node>;
  using TableLink = typename Blocks::template Link<void>;
  using Table = container::HashTable<TableLink>;
  using Place = typename Table::Place;
  // Numbers that are hashed and compared as numbers may lie in the table as their order has them.
  static constexpr bool has_number_keys =
      container::Number<K> && std::is_same_v<Hasher, HasherDefault> && std::is_same_v<Comparator, ComparatorDefault<K>>;
  static constexpr bool has_spread_hashes = std::is_same_v<Hasher, HasherDefault> && container::String<K>;
  using Order = container::NodeOrder<Node, NodeLink>;

  // Links of the table count in units of 8 bytes, whatever the node's type. One alignas: of two, GCC takes the last.
  struct alignas(std::max(alignof(KeyValue<K, V>), std::size_t{8})) Node : container::OrderLinks<NodeLink> {
    template <class... Arguments>
    explicit Node(Arguments&&... arguments) : entry(std::in_place, std::forward<Arguments>(arguments)...) {}

    [[nodiscard]] auto& operator*() noexcept { return entry; }
    [[nodiscard]] auto& operator*() const noexcept { return entry; }

    KeyValue<K, V> entry;
  };

 public:
  using Iterator = container::NodeIterator<HashMap, Order, Node, KeyValue<K, V>>;
  using ConstIterator = container::NodeIterator<HashMap, Order, const Node, const KeyValue<K, V>>;
  using iterator = Iterator;
  using const_iterator = ConstIterator;
  using value_type = KeyValue<K, V>;

  /// What a BlockAllocator for this map's nodes must fit, bytes.
  static constexpr std::size_t block_bytes() { return sizeof(Node); }
  static constexpr std::size_t block_alignment() { return alignof(Node); }

  constexpr HashMap() noexcept = default;
  /// Takes its nodes from `blocks` (DirectBlocks: a BlockAllocator&).
  explicit HashMap(Blocks blocks) noexcept : blocks_(std::move(blocks)) {}
  /// Makes room, as reserve().
  explicit HashMap(std::size_t entries) { reserve(entries); }
  /// Of pairs, or entries of another map.
  template <std::input_iterator I, std::sentinel_for<I> S>
  HashMap(I first, S last, Blocks blocks = Blocks()) : HashMap(std::move(blocks)) {
    for (; first != last; ++first) {
      const auto& [key, value] = *first;
      insert(key, value);
    }
  }
  // These two delegate, so that the destructor runs when an entry's constructor throws.
  HashMap(std::initializer_list<std::pair<K, V>> entries, Blocks blocks = Blocks()) : HashMap(std::move(blocks)) {
    reserve(entries.size());
    for (const std::pair<K, V>& entry : entries) {
      insert(entry.first, entry.second);
    }
  }
  HashMap(const HashMap& other) : HashMap(other.blocks_.for_copy()) {
    reserve(other.size_);
    if constexpr (has_number_keys) {
      spreading_ = other.spreading_;
    }
    for (const KeyValue<K, V>& entry : other) {
      add(hashed(entry.key), false, entry.key, entry.value);
    }
  }
  HashMap(HashMap&& other) noexcept : blocks_(std::move(other.blocks_)) { swap_entries(other); }
  HashMap& operator=(const HashMap& other) { return this == &other ? *this : (*this = HashMap(other)); }
  HashMap& operator=(HashMap&& other) noexcept {
    HashMap taken(std::move(other));
    swap(taken);
    return *this;
  }
  /// Keeps a shared allocator.
  HashMap& operator=(std::initializer_list<std::pair<K, V>> entries) {
    return *this = HashMap(entries, blocks_.for_copy());
  }
  ~HashMap() {
    table_.release();  // a destructor that looks for an entry finds none
    end_nodes();
  }

  void swap(HashMap& other) noexcept {
    swap_entries(other);
    blocks_.swap(other.blocks_);
  }
  friend void swap(HashMap& a, HashMap& b) noexcept { a.swap(b); }

  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  [[nodiscard]] bool is_empty() const noexcept { return size_ == 0; }
  /// Entries that fit before the table must grow.
  [[nodiscard]] std::size_t get_capacity() const noexcept { return table_.capacity(); }

  /// Makes room in the table for `entries` in all, so that inserts up to there do not grow it. Throws std::bad_alloc.
  void reserve(std::size_t entries) {
    if (entries > table_.capacity()) {
      grow(entries);
    }
  }

  /// Inserts a key with a value, or assigns the value if the key is there. A new entry comes last in the order, or
  /// first with `front`.
  Iterator insert(const K& key, const V& value, bool front = false) { return assign(front, key, value); }
  Iterator insert(const K& key, V&& value, bool front = false) { return assign(front, key, std::move(value)); }
  Iterator insert(K&& key, V&& value, bool front = false) { return assign(front, std::move(key), std::move(value)); }

  /// Inserts a key with a value made of `value`, unless the key is there: then nothing is made or moved from. V need
  /// neither be assignable nor have a default. The entry, and whether it is new.
  template <class... Value>
  std::pair<Iterator, bool> try_emplace(const K& key, Value&&... value) {
    return emplaced(key, std::forward<Value>(value)...);
  }
  template <class... Value>
  std::pair<Iterator, bool> try_emplace(K&& key, Value&&... value) {
    return emplaced(std::move(key), std::forward<Value>(value)...);
  }
  /// The same, with what a K can be made of.
  template <class Key, class... Value>
  std::pair<Iterator, bool> emplace(Key&& key, Value&&... value) {
    if constexpr (std::is_same_v<std::remove_cvref_t<Key>, K>) {
      return emplaced(std::forward<Key>(key), std::forward<Value>(value)...);
    } else {
      return emplaced(K(std::forward<Key>(key)), std::forward<Value>(value)...);
    }
  }

  /// The value of a key, inserted as V() if it is not there.
  V& operator[](const K& key) { return at_or_added(key); }
  V& operator[](K&& key) { return at_or_added(std::move(key)); }

  /// The value of a key that is there; throws std::out_of_range if not.
  [[nodiscard]] V& get(const K& key) { return value_at(key); }
  [[nodiscard]] const V& get(const K& key) const { return value_at(key); }
  [[nodiscard]] V& at(const K& key) { return value_at(key); }
  [[nodiscard]] const V& at(const K& key) const { return value_at(key); }
  [[nodiscard]] const V& operator[](const K& key) const { return value_at(key); }

  /// The value of a key, nullptr if it is not there.
  [[nodiscard]] V* getptr(const K& key) { return value_or_null(key); }
  [[nodiscard]] const V* getptr(const K& key) const { return value_or_null(key); }

  [[nodiscard]] bool has(const K& key) const { return is_there(key); }
  [[nodiscard]] bool contains(const K& key) const { return is_there(key); }

  /// end() if the key is not there.
  [[nodiscard]] Iterator find(const K& key) { return {lookup(key, hashed(key)), this}; }
  [[nodiscard]] ConstIterator find(const K& key) const { return {lookup(key, hashed(key)), this}; }

  /// Removes a key; whether it was there.
  bool erase(const K& key) { return erase_key(key); }

  // The same by what stands for a key.
  template <class Q>
  static constexpr bool stands_for_key =
      !std::is_same_v<Q, K> && ((has_spread_hashes && std::is_same_v<Comparator, ComparatorDefault<K>> &&
                                 std::is_convertible_v<const Q&, std::string_view>) ||
                                requires {
                                  typename Hasher::is_transparent;
                                  typename Comparator::is_transparent;
                                });
  template <class Q>
  requires stands_for_key<Q>
  [[nodiscard]] V& get(const Q& key) { return value_at(key); }
  template <class Q>
  requires stands_for_key<Q>
  [[nodiscard]] const V& get(const Q& key) const { return value_at(key); }
  template <class Q>
  requires stands_for_key<Q>
  [[nodiscard]] V& at(const Q& key) { return value_at(key); }
  template <class Q>
  requires stands_for_key<Q>
  [[nodiscard]] const V& at(const Q& key) const { return value_at(key); }
  template <class Q>
  requires stands_for_key<Q>
  [[nodiscard]] V* getptr(const Q& key) { return value_or_null(key); }
  template <class Q>
  requires stands_for_key<Q>
  [[nodiscard]] const V* getptr(const Q& key) const { return value_or_null(key); }
  template <class Q>
  requires stands_for_key<Q>
  [[nodiscard]] bool has(const Q& key) const { return is_there(key); }
  template <class Q>
  requires stands_for_key<Q>
  [[nodiscard]] bool contains(const Q& key) const { return is_there(key); }
  template <class Q>
  requires stands_for_key<Q>
  [[nodiscard]] Iterator find(const Q& key) { return {lookup(key, hashed(key)), this}; }
  template <class Q>
  requires stands_for_key<Q>
  [[nodiscard]] ConstIterator find(const Q& key) const { return {lookup(key, hashed(key)), this}; }
  template <class Q>
  requires(stands_for_key<Q> && !std::is_convertible_v<const Q&, ConstIterator>) bool erase(const Q& key) {
    return erase_key(key);
  }

  /// Removes the entry of an iterator, which is not the end. An iterator to the next entry.
  Iterator erase(const ConstIterator& at) {
    ConstIterator next = at;
    ++next;
    remove(at);
    return {const_cast<Node*>(next.element()), this};
  }

  /// Removes the entry of an iterator; nothing happens at the end. The iterator is invalid afterwards.
  void remove(const ConstIterator& at) {
    if (at) {
      const std::uint64_t hash = hashed(at->key);
      erase_at(place_of_node(at.element(), hash), hash);
    }
  }

  /// Gives an entry another key; its address, value and place in the order stay. False, with nothing changed, if
  /// `old_key` is not there or another entry has `new_key`. If assigning the key throws, the entry is as before.
  bool replace_key(const K& old_key, const K& new_key) {
    const std::uint64_t old_hash = hashed(old_key);
    const std::uint64_t new_hash = hashed(new_key);
    const Place place = place_of(old_key, old_hash);
    if (place.chunk == nullptr) {
      return false;
    }
    Node* const node = node_at(place.link());
    if (const Node* const there = lookup(new_key, new_hash); there != nullptr) {
      return there == node;
    }
    const_cast<K&>(node->entry.key) = new_key;
    table_.erase(place, old_hash);
    enter(node, new_hash);
    return true;
  }

  /// Destroys all entries; keeps table and allocator. An entry's destructor finds an empty map, and must not insert.
  /// O(size + capacity).
  void clear() noexcept {
    if (size_ != 0) {
      table_.clear();
      end_nodes();
    }
  }

  /// Makes the table as small as the entries allow, and gives unused pages of an allocator of the map's own back.
  /// Without memory for a smaller table, the map stays as it is. O(size).
  void shrink_to_fit() {
    if (size_ == 0) {
      table_.release();
    } else {
      static_cast<void>(rebuild(size_));
    }
    if constexpr (Blocks::can_reset) {
      blocks_.trim();
    }
  }

  /// Bytes of entries and table. O(1).
  [[nodiscard]] std::size_t memory_bytes() const noexcept {
    return size_ * block::stride_of(sizeof(Node), alignof(Node)) + table_.bytes();
  }

  /// Whether both have the same keys with equal values, in any order. O(size).
  friend bool operator==(const HashMap& a, const HashMap& b) requires std::equality_comparable<V> {
    return a.size_ == b.size_ && std::all_of(a.begin(), a.end(), [&](const KeyValue<K, V>& entry) {
             const V* const other = b.getptr(entry.key);
             return other != nullptr && *other == entry.value;
           });
  }

  /// Sorts stably, by key; addresses stay.
  void sort() {
    sort_by([](const KeyValue<K, V>& a, const KeyValue<K, V>& b) { return a.key < b.key; });
  }
  /// By a comparison class: C()(a, b) of two KeyValue is whether a comes first.
  template <class C>
  void sort_custom() {
    sort_by(C());
  }
  template <class C>
  void sort_by(C&& less) {
    order_.sort(size_, less);
  }

  [[nodiscard]] Iterator begin() noexcept { return {order_.first.get(), this}; }
  [[nodiscard]] Iterator end() noexcept { return {nullptr, this}; }
  /// The last entry; end() when the map is empty.
  [[nodiscard]] Iterator last() noexcept { return {order_.last.get(), this}; }
  [[nodiscard]] ConstIterator begin() const noexcept { return {order_.first.get(), this}; }
  [[nodiscard]] ConstIterator end() const noexcept { return {nullptr, this}; }
  [[nodiscard]] ConstIterator last() const noexcept { return {order_.last.get(), this}; }

  /// Cache lines of the table that the longest search for an entry reads, which says how well the keys are spread.
  /// O(size).
  [[nodiscard]] std::size_t longest_search() const { return table_.longest_search(source()); }

  /// Whether table and order agree, for tests. O(capacity).
  [[nodiscard]] bool invariants_hold() const {
    return order_.invariants_hold(size_) && table_.invariants_hold(size_, source());
  }

 private:
  template <class, class, class, class, class>
  friend class container::NodeIterator;
  Node* last_node() const noexcept { return order_.last.get(); }

  // What mix() takes: the table chooses it for number keys.
  struct FixedSpreading {
    static constexpr std::uint64_t multiplier =
        has_spread_hashes ? container::no_multiplier : container::spread_multipliers.front();
  };
  struct ChosenSpreading {
    std::uint64_t multiplier = container::spread_multipliers.front();
  };

  // Where the table can't choose another multiplier, two products: one puts all keys of some strides into few chunks.
  template <class Q>
  static std::uint64_t hash_of(const Q& key) {
    const auto hash = static_cast<std::uint64_t>(Hasher::hash(as_seen(key)));
    return has_number_keys || has_spread_hashes ? hash
                                                : container::fold_product(hash, container::spread_multipliers.back());
  }
  // What stands for a string is hashed and compared as a std::string_view.
  template <class Q>
  static decltype(auto) as_seen(const Q& key) {
    if constexpr (has_spread_hashes && !std::is_same_v<Q, K>) {
      return std::string_view(key);
    } else {
      return (key);
    }
  }
  template <class Q>
  static bool are_equal(const K& key, const Q& other) {
    if constexpr (has_spread_hashes && !std::is_same_v<Q, K>) {
      return std::string_view(key) == std::string_view(other);
    } else {
      return Comparator::compare(key, other);
    }
  }
  template <class Q>
  [[nodiscard]] std::uint64_t hashed(const Q& key) const {
    return container::mix(hash_of(key), spreading_.multiplier);
  }

  template <class Link>
  static Node* node_at(Link link) noexcept {
    return static_cast<Node*>(link.get_unchecked());
  }
  template <class Q>
  Place place_of(const Q& key, std::uint64_t hash) const {
    return table_.find(hash, [&](auto link) { return are_equal(node_at(link)->entry.key, key); });
  }
  Place place_of_node(const Node* node, std::uint64_t hash) const noexcept {
    return table_.find(hash, [node](auto link) { return node_at(link) == node; });
  }
  template <class Q>
  Node* lookup(const Q& key, std::uint64_t hash) const {
    const Place place = place_of(key, hash);
    return place.chunk == nullptr ? nullptr : node_at(place.link());
  }
  template <class Q>
  V* value_or_null(const Q& key) const {
    Node* const node = lookup(key, hashed(key));
    return node == nullptr ? nullptr : std::addressof(node->entry.value);
  }
  template <class Q>
  V& value_at(const Q& key) const {
    V* const value = value_or_null(key);
    if (value == nullptr) {
      block::throw_out_of_range("blockyard::HashMap: no such key");
    }
    return *value;
  }
  template <class Q>
  bool is_there(const Q& key) const {
    return place_of(key, hashed(key)).chunk != nullptr;
  }
  template <class Q>
  bool erase_key(const Q& key) {
    const std::uint64_t hash = hashed(key);
    const Place place = place_of(key, hash);
    if (place.chunk != nullptr) {
      erase_at(place, hash);
    }
    return place.chunk != nullptr;
  }

  template <class Key, class Value>
  [[gnu::always_inline]] Iterator assign(bool front, Key&& key, Value&& value) {
    const std::uint64_t hash = hashed(key);
    Node* const node = lookup(key, hash);
    if (node != nullptr) {
      node->entry.value = std::forward<Value>(value);
      return {node, this};
    }
    constexpr bool assigns = !is_trivially_made<Key, Value>;
    return {add<assigns>(hash, front, std::forward<Key>(key), std::forward<Value>(value)).first, this};
  }
  template <class Key, class... Value>
  std::pair<Iterator, bool> emplaced(Key&& key, Value&&... value) {
    const std::uint64_t hash = hashed(key);
    if (Node* const node = lookup(key, hash); node != nullptr) {
      return {Iterator(node, this), false};
    }
    const auto [node, is_new] = add(hash, false, std::forward<Key>(key), std::forward<Value>(value)...);
    return {Iterator(node, this), is_new};
  }
  template <class Key>
  V& at_or_added(Key&& key) {
    const std::uint64_t hash = hashed(key);
    Node* const node = lookup(key, hash);
    if (node != nullptr) {
      return node->entry.value;
    }
    if constexpr (std::is_trivially_copy_constructible_v<V> && std::is_trivially_default_constructible_v<V>) {
      // Shares its code with insert().
      const V added = V();
      return add(hash, false, std::forward<Key>(key), added).first->entry.value;
    } else {
      return add(hash, false, std::forward<Key>(key)).first->entry.value;
    }
  }

  // All entries, for the table.
  typename Table::Source source() const noexcept {
    return {order_.first.get(),
            [](const void*& at, typename Table::Source::Entries& entries) {
              std::size_t count = 0;
              const Node* node = static_cast<const Node*>(at);
              for (; node != nullptr && count < entries.size(); node = Order::next_of(node)) {
                entries[count++] = {hash_of(node->entry.key), TableLink(const_cast<Node*>(node))};
              }
              at = node;
              return count;
            },
            spreading_.multiplier};
  }

  // Makes room in the table. Hashes that were mixed before are no longer right.
  [[gnu::noinline]] void grow(std::size_t entries) {
    if (!rebuild(entries)) {
      block::throw_bad_alloc();
    }
  }
  bool rebuild(std::size_t entries) {
    std::uint64_t* chosen = nullptr;
    if constexpr (has_number_keys) {
      chosen = &spreading_.multiplier;
    }
    return table_.rebuild(entries, source(), chosen);
  }

  // Whether no code of the program runs while an entry is made. Such code may use this map.
  template <class Key, class... Value>
  static constexpr bool is_trivially_made =
      std::is_trivially_constructible_v<K, Key>&& std::is_trivially_constructible_v<V, Value...>;

  void make_room(std::uint64_t& hash, const K& key) {
    if (size_ >= table_.capacity()) [[unlikely]] {
      grow(std::size_t{size_} + 1);
      if constexpr (has_number_keys) {
        hash = hashed(key);
      }
    }
  }

  // Adds an entry for a key that a search did not find; whether it is new. Out of line, as everything but the search
  // is: each caller would copy this. The new entry's constructors may have changed the map, and even added its key: the
  // search is repeated, in a line that is in the cache. `assigns` says whether an entry found then gets the new value.
  template <bool assigns = false, class Key, class... Value>
  [[gnu::noinline]] std::pair<Node*, bool> add(std::uint64_t hash, bool front, Key&& key, Value&&... value) {
    constexpr bool may_change = !is_trivially_made<Key, Value...>;
    if constexpr (!may_change) {
      make_room(hash, key);
    }
    Node* const node = container::Nodes::make<Node>(blocks_, std::forward<Key>(key), std::forward<Value>(value)...);
    if constexpr (may_change) {
      block::OnThrow unless_added([&] { end_node(node); });
      const K& added = node->entry.key;
      if constexpr (has_number_keys) {
        hash = hashed(added);
      }
      if (Node* const there = lookup(added, hash); there != nullptr) [[unlikely]] {
        if constexpr (assigns) {
          there->entry.value = std::move(node->entry.value);
        }
        return {there, false};
      }
      make_room(hash, added);
      unless_added.done();
    }
    order_.link_before(node, front ? order_.first.get() : nullptr);
    ++size_;
    enter(node, hash);
    return {node, true};
  }

  void enter(Node* node, std::uint64_t hash) noexcept {
    const unsigned passed = table_.insert(hash, TableLink(node));
    if constexpr (has_number_keys) {
      if (passed > Table::longest_usual_search) [[unlikely]] {
        table_.spread(source(), spreading_.multiplier);
      }
    }
  }

  [[gnu::noinline]] void erase_at(Place place, std::uint64_t hash) noexcept {
    Node* const node = node_at(place.link());
    table_.erase(place, hash);
    --size_;
    order_.unlink(node);
    container::Nodes::end(blocks_, node);
  }

  [[gnu::noinline]] void end_node(Node* node) noexcept { container::Nodes::end(blocks_, node); }
  [[gnu::noinline]] void end_nodes() noexcept {
    order_.template clear<false>(blocks_, std::exchange(size_, std::uint32_t{0}));
  }

  void swap_entries(HashMap& other) noexcept {
    table_.swap(other.table_);
    std::swap(size_, other.size_);
    std::swap(order_, other.order_);
    if constexpr (has_number_keys) {
      std::swap(spreading_, other.spreading_);
    }
  }

  [[no_unique_address]] Table table_;  // size_ lies in its padding
  std::uint32_t size_ = 0;
  Order order_;
  [[no_unique_address]] std::conditional_t<has_number_keys, ChosenSpreading, FixedSpreading> spreading_;
  [[no_unique_address]] Blocks blocks_;
};

static_assert(sizeof(HashMap<int, int>) <= 40);

}  // namespace blockyard

#endif
