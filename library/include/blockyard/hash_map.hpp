/// HashMap<K, V>: a hash table with the engine's interface that keeps insertion order; an entry's address never
/// changes.
///
/// Bounds: insert, find and erase O(1) expected, with one access to the slot array and one to the node; growing the
/// slot array is O(size) and touches no node. clear O(size). Iteration follows the order of insertion, which is as a
/// rule the order in memory. Memory: a node of two links, key and value (16 bytes for two ints), and 8 bytes a slot, at
/// least 13/24 of them in use once it has grown: 26 to 31 bytes an entry of two ints. The object is 24 bytes;
/// DirectBlocks add 8, number keys too. At most 2.6 * 10^9 entries.
///
/// Where alignment leaves four bytes before the key (an int and a std::string, a pointer or a double), the two links
/// lie in them: 8 bytes less an entry, 40 for an int and a string, and sort() of a large map adds up to 16
/// (node_order.hpp).
///
/// Keys that are integers or enumerations, with the default hasher and comparator, need no slots while they are dense:
/// 4 bytes an entry when each key of a range is there (20 for two ints), and never more than slots would take
/// (number_index.hpp).
///
/// Hasher has a static hash(const K&) that returns an integer; Comparator a static compare(a, b) for equality.
///
/// Exceptions: std::bad_alloc, and what keys, values, hasher and comparator throw; the map is then as before.
/// Thread-safety: as std::unordered_map. Iterators and pointers stay valid until their own entry is erased.
#ifndef BLOCKYARD_HASH_MAP_HPP
#define BLOCKYARD_HASH_MAP_HPP

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <new>
#include <type_traits>
#include <utility>

#include "blockyard/detail/hash_slots.hpp"
#include "blockyard/detail/node_order.hpp"
#include "blockyard/detail/number_index.hpp"
#include "blockyard/hash.hpp"
#include "blockyard/node_blocks.hpp"

namespace blockyard {

template <class K, class V, class Hasher = HasherDefault, class Comparator = ComparatorDefault<K>,
          class A = StaticBlocks>
class HashMap {
  struct Node;
  using Blocks = typename A::template For<Node>;
  using NodeLink = typename Blocks::template Link<Node>;
  using SlotLink = typename Blocks::template Link<void>;
  // Numbers that are hashed and compared as such may be looked up by position.
  static constexpr bool has_number_keys =
      container::Number<K> && std::is_same_v<Hasher, HasherDefault> && std::is_same_v<Comparator, ComparatorDefault<K>>;
  using Slots = container::HashSlots<SlotLink>;
  using Index = std::conditional_t<has_number_keys, container::NumberIndex<SlotLink>, Slots>;
  using Hash = typename Index::Key;
  using Place = typename Index::Place;

  struct Linked {
    NodeLink next;
    NodeLink previous;
  };
  struct Packed {};
  static constexpr bool is_packed() {
    return container::EntryLayout<K, V>::has_room && std::is_same_v<NodeLink, NearLink<Node>>;
  }

  struct Ends {
    NodeLink first;
    NodeLink last;
  };

  template <class N, class E>
  class BasicIterator;

 public:
  using Iterator = BasicIterator<Node, KeyValue<K, V>>;
  using ConstIterator = BasicIterator<const Node, const KeyValue<K, V>>;
  using iterator = Iterator;
  using const_iterator = ConstIterator;
  using value_type = KeyValue<K, V>;

  /// What a BlockAllocator for this map's nodes must fit.
  static constexpr std::size_t block_bytes() { return sizeof(Node); }
  static constexpr std::size_t block_alignment() { return alignof(Node); }

  constexpr HashMap() noexcept = default;
  /// Takes its nodes from `blocks` (DirectBlocks: a BlockAllocator&).
  explicit HashMap(Blocks blocks) noexcept : blocks_(std::move(blocks)) {}
  HashMap(std::initializer_list<std::pair<K, V>> entries) {
    Guard guard(this);
    reserve(entries.size());
    for (const std::pair<K, V>& entry : entries) {
      insert(entry.first, entry.second);
    }
    guard.release();
  }
  HashMap(const HashMap& other) : blocks_(other.blocks_.for_copy()) {
    Guard guard(this);
    reserve(other.size_);
    for (const KeyValue<K, V>& entry : other) {
      insert(entry.key, entry.value);
    }
    guard.release();
  }
  HashMap(HashMap&& other) noexcept : blocks_(std::move(other.blocks_)) { take(other); }
  HashMap& operator=(const HashMap& other) {
    if (this != &other) {
      HashMap copy(other);
      swap(copy);
    }
    return *this;
  }
  HashMap& operator=(HashMap&& other) noexcept {
    if (this != &other) {
      destroy_nodes();
      index_.release();
      blocks_ = std::move(other.blocks_);
      take(other);
    }
    return *this;
  }
  HashMap& operator=(std::initializer_list<std::pair<K, V>> entries) {
    HashMap made(entries);
    swap(made);
    return *this;
  }
  ~HashMap() { destroy_nodes(); }

  void swap(HashMap& other) noexcept {
    index_.swap(other.index_);
    std::swap(size_, other.size_);
    std::swap(ends_, other.ends_);
    blocks_.swap(other.blocks_);
  }
  friend void swap(HashMap& a, HashMap& b) noexcept { a.swap(b); }

  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  [[nodiscard]] bool is_empty() const noexcept { return size_ == 0; }
  /// Slots: the map grows when thirteen sixteenths of them are in use. While number keys are dense, the length of the
  /// range that there is memory for.
  [[nodiscard]] std::size_t get_capacity() const noexcept { return index_.capacity(); }

  /// Makes room for `entries` in all, so that no insert up to there grows the slot array (but the one with which number
  /// keys stop being dense). Throws std::bad_alloc.
  void reserve(std::size_t entries) {
    bool done;
    if constexpr (has_number_keys) {
      done = index_.reserve(entries, walk());
    } else {
      done = entries <= index_.limit() || index_.reserve(entries);
    }
    if (!done) {
      block::throw_bad_alloc();
    }
  }

  /// Enters a key with a value, or gives a present key that value; at the end of the order, or with `front` at its
  /// beginning.
  Iterator insert(const K& key, const V& value, bool front = false) {
    const Hash hash = hash_of(key);
    const Place place = place_of(key, hash);
    if (place.there) {
      Node* const node = node_at(*place.link);
      node->entry.value = value;
      return {node, this};
    }
    return {add(place, hash, front, key, value), this};
  }
  Iterator insert(K&& key, V&& value, bool front = false) {
    const Hash hash = hash_of(key);
    const Place place = place_of(key, hash);
    if (place.there) {
      Node* const node = node_at(*place.link);
      node->entry.value = std::move(value);
      return {node, this};
    }
    return {add(place, hash, front, std::move(key), std::move(value)), this};
  }

  /// The value of a key, entered as V() when it is not there.
  [[nodiscard]] V& operator[](const K& key) { return at_or_added(key); }
  [[nodiscard]] V& operator[](K&& key) { return at_or_added(std::move(key)); }

  /// The value of a key that is there; throws std::out_of_range if not.
  [[nodiscard]] V& get(const K& key) {
    Node* const node = lookup(key, hash_of(key));
    if (node == nullptr) {
      block::throw_out_of_range("blockyard::HashMap: no such key");
    }
    return node->entry.value;
  }
  [[nodiscard]] const V& get(const K& key) const { return const_cast<HashMap*>(this)->get(key); }

  /// The value of a key, nullptr if it is not there.
  [[nodiscard]] V* getptr(const K& key) {
    Node* const node = lookup(key, hash_of(key));
    return node == nullptr ? nullptr : &node->entry.value;
  }
  [[nodiscard]] const V* getptr(const K& key) const { return const_cast<HashMap*>(this)->getptr(key); }

  [[nodiscard]] bool has(const K& key) const { return lookup(key, hash_of(key)) != nullptr; }

  /// end() if the key is not there.
  [[nodiscard]] Iterator find(const K& key) { return {lookup(key, hash_of(key)), this}; }
  [[nodiscard]] ConstIterator find(const K& key) const { return {lookup(key, hash_of(key)), this}; }

  /// Removes a key; whether it was there.
  bool erase(const K& key) {
    const Place place = place_of(key, hash_of(key));
    if (place.there) {
      erase_at(place);
    }
    return place.there;
  }

  /// Removes the entry of an iterator; nothing happens at the end. The iterator is invalid afterwards.
  void remove(const ConstIterator& at) {
    if (at) {
      erase_at(place_of(at.node_, hash_of(at->key)));
    }
  }

  /// Gives an entry another key and keeps its address, value and place in the order. False, and nothing changed, when
  /// `old_key` is not there or `new_key` is. If assigning the key throws, the entry is as before.
  bool replace_key(const K& old_key, const K& new_key);

  /// Destroys all entries and keeps slots and allocator. O(size + capacity).
  void clear() noexcept {
    if (size_ != 0) {
      destroy_nodes();
      index_.clear();
    }
  }

  /// By key, stable; addresses stay.
  void sort() {
    sort_by([](const KeyValue<K, V>& a, const KeyValue<K, V>& b) { return a.key < b.key; });
  }
  /// By a comparison class: C()(a, b) of two KeyValue is whether a comes first.
  template <class C>
  void sort_custom() {
    sort_by(C());
  }
  template <class C>
  void sort_by(C&& less);

  [[nodiscard]] Iterator begin() noexcept { return {ends_.first.get(), this}; }
  [[nodiscard]] Iterator end() noexcept { return {nullptr, this}; }
  /// The last entry; end() when the map is empty.
  [[nodiscard]] Iterator last() noexcept { return {ends_.last.get(), this}; }
  [[nodiscard]] ConstIterator begin() const noexcept { return {ends_.first.get(), this}; }
  [[nodiscard]] ConstIterator end() const noexcept { return {nullptr, this}; }
  [[nodiscard]] ConstIterator last() const noexcept { return {ends_.last.get(), this}; }

  /// Slots that the longest search for an entry looks at: how well the keys are spread. O(capacity).
  [[nodiscard]] std::size_t longest_search() const noexcept { return index_.longest_search(); }

  /// Checks slots and order against each other: for tests. O(capacity).
  [[nodiscard]] bool invariants_hold() const;

 private:
  class Guard;

  static Hash hash_of(const K& key) {
    const std::uint64_t hashed = static_cast<std::uint64_t>(Hasher::hash(key));
    if constexpr (has_number_keys) {
      return Index::template key_of<is_signed()>(hashed);
    } else {
      return Slots::mix(hashed);
    }
  }
  static constexpr bool is_signed() {
    if constexpr (std::is_enum_v<K>) {
      return std::is_signed_v<std::underlying_type_t<K>>;
    } else {
      return std::is_signed_v<K>;
    }
  }
  static Node* node_at(SlotLink link) noexcept { return static_cast<Node*>(link.get_unchecked()); }

  Place place_of(const K& key, Hash hash) const {
    return index_.find_place(hash, [&](SlotLink link) { return Comparator::compare(node_at(link)->entry.key, key); });
  }
  Place place_of(const Node* node, Hash hash) const noexcept {
    return index_.find_place(hash, [node](SlotLink link) { return node_at(link) == node; });
  }
  Node* lookup(const K& key, Hash hash) const {
    const Place place = place_of(key, hash);
    return place.there ? node_at(*place.link) : nullptr;
  }

  template <class Key>
  V& at_or_added(Key&& key);

  // Makes room in the index for one more entry.
  void grow(Hash hash) {
    bool done;
    if constexpr (has_number_keys) {
      done = index_.grow(size_, hash, walk());
    } else {
      done = index_.reserve(std::size_t{size_} + 1);
    }
    if (!done) {
      block::throw_bad_alloc();
    }
  }
  auto walk() const noexcept requires has_number_keys {
    return typename Index::Walk{ends_.first.get(),
                                [](const void* node, Hash& hash, SlotLink& link) noexcept -> const void* {
                                  Node* const at = static_cast<Node*>(const_cast<void*>(node));
                                  hash = hash_of(at->entry.key);
                                  link = SlotLink(at);
                                  return Node::Order::next(at);
                                }};
  }

  // What fills a map of dense numbers is inlined: a quarter less time than with a call.
  template <class... Arguments>
  [[gnu::always_inline]] Node* add(Place place, Hash hash, bool front, Arguments&&... arguments) {
    if constexpr (has_number_keys && requires { blocks_.take_ready(); }) {
      if (!front && index_.is_dense() && place.link != nullptr) [[likely]] {
        if (void* const block = blocks_.take_ready(); block != nullptr) [[likely]] {
          Node* const node = make(block, false, std::forward<Arguments>(arguments)...);
          *place.link = SlotLink(node);
          ++size_;
          return node;
        }
      }
    }
    return add_slow(place, hash, front, std::forward<Arguments>(arguments)...);
  }

  // Out of line, as everything is that is not a search: the search dominates its time, and it would be copied into each
  // caller.
  template <class... Arguments>
  Node* add_slow(Place place, Hash hash, bool front, Arguments&&... arguments);

  // A node in its place in the order; the block is freed when that fails.
  template <class... Arguments>
  [[gnu::always_inline]] Node* make(void* block, bool front, Arguments&&... arguments) {
    Node* node = nullptr;
    try {
      node = ::new (block) Node(std::forward<Arguments>(arguments)...);
      Node::Order::link(ends_, node, front);
    } catch (...) {
      std::destroy_n(node, node != nullptr ? 1 : 0);
      blocks_.deallocate(block);
      throw;
    }
    return node;
  }

  void erase_at(Place place) noexcept;
  void destroy_nodes() noexcept;

  void take(HashMap& other) noexcept {
    index_.swap(other.index_);
    size_ = std::exchange(other.size_, 0);
    ends_ = std::exchange(other.ends_, Ends());
  }

  [[no_unique_address]] Index index_;
  Ends ends_;
  std::uint32_t size_ = 0;
  [[no_unique_address]] Blocks blocks_;
};

static_assert(sizeof(HashMap<int, int>) <= 40);

}  // namespace blockyard

#include "blockyard/detail/hash_map_parts.hpp"

#endif
