/// HashMap<K, V>: a hash table with the interface of Godot's HashMap. It keeps the order of insertion, and an entry's
/// address never changes.
///
/// Time: insert, find and erase take O(1) expected: one access to the index, one to the node. Growing the index takes
/// O(size) and touches no node. clear takes O(size). Iteration follows the order of insertion, which is mostly the
/// order in memory.
///
/// Memory: per entry a node of two 32-bit links, key and value (16 bytes for two ints), and 8 bytes per slot of the
/// index, of which at least 13/24 are in use once it has grown: 26 to 31 bytes for two ints. Where keys are integers or
/// enumerations with the default hasher and comparator, and lie close together, the index is an array by key: down to
/// 20 bytes. The object is 24 bytes; DirectBlocks add 8, number keys too. At most 2.6 * 10^9 entries.
///
/// Hasher has a static hash(const K&) that returns an integer; Comparator a static compare(a, b) for equality.
///
/// Exceptions: std::bad_alloc, and what keys, values, hasher and comparator throw. The map is then as before.
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
#include "blockyard/detail/node_iterator.hpp"
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
  // Numbers that are hashed and compared as numbers may be looked up in an array.
  static constexpr bool has_number_keys =
      container::Number<K> && std::is_same_v<Hasher, HasherDefault> && std::is_same_v<Comparator, ComparatorDefault<K>>;
  using Slots = container::HashSlots<SlotLink>;
  using Index = std::conditional_t<has_number_keys, container::NumberIndex<SlotLink>, Slots>;
  using Hash = typename Index::Key;
  using Place = typename Index::Place;

  using Order = container::NodeOrder<Node, NodeLink>;

 public:
  using Iterator = container::NodeIterator<HashMap, Node, KeyValue<K, V>>;
  using ConstIterator = container::NodeIterator<HashMap, const Node, const KeyValue<K, V>>;
  using iterator = Iterator;
  using const_iterator = ConstIterator;
  using value_type = KeyValue<K, V>;

  /// What a BlockAllocator for this map's nodes must fit, bytes.
  static constexpr std::size_t block_bytes() { return sizeof(Node); }
  static constexpr std::size_t block_alignment() { return alignof(Node); }

  constexpr HashMap() noexcept = default;
  /// Takes its nodes from `blocks` (DirectBlocks: a BlockAllocator&).
  explicit HashMap(Blocks blocks) noexcept : blocks_(std::move(blocks)) {}
  // These two delegate, so that the destructor runs when an entry's constructor throws.
  HashMap(std::initializer_list<std::pair<K, V>> entries) : HashMap() {
    reserve(entries.size());
    for (const std::pair<K, V>& entry : entries) {
      insert(entry.first, entry.second);
    }
  }
  HashMap(const HashMap& other) : HashMap(other.blocks_.for_copy()) {
    reserve(other.size_);
    for (const KeyValue<K, V>& entry : other) {
      insert(entry.key, entry.value);
    }
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
    std::swap(order_, other.order_);
    blocks_.swap(other.blocks_);
  }
  friend void swap(HashMap& a, HashMap& b) noexcept { a.swap(b); }

  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  [[nodiscard]] bool is_empty() const noexcept { return size_ == 0; }
  /// Slots of the index, which grows when 13/16 of them are in use. While the index is an array by key: its length.
  [[nodiscard]] std::size_t get_capacity() const noexcept { return index_.capacity(); }

  /// Makes room in the index for `entries` in all, so that inserts up to there do not grow it, except the one with
  /// which number keys stop being dense. Throws std::bad_alloc.
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

  /// Inserts a key with a value, or assigns the value if the key is there. A new entry comes last in the order, or
  /// first with `front`.
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

  /// The value of a key, inserted as V() if it is not there.
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
      erase_at(place_of(at.element(), hash_of(at->key)));
    }
  }

  /// Gives an entry another key; its address, value and place in the order stay. False, with nothing changed, if
  /// `old_key` is not there or `new_key` is. If assigning the key throws, the entry is as before.
  bool replace_key(const K& old_key, const K& new_key);

  /// Destroys all entries; keeps index and allocator. O(size + capacity).
  void clear() noexcept {
    if (size_ != 0) {
      destroy_nodes();
      index_.clear();
    }
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
    order_.sort(size_, [&](const Node* a, const Node* b) { return less(a->entry, b->entry); });
  }

  [[nodiscard]] Iterator begin() noexcept { return {order_.first.get(), this}; }
  [[nodiscard]] Iterator end() noexcept { return {nullptr, this}; }
  /// The last entry; end() when the map is empty.
  [[nodiscard]] Iterator last() noexcept { return {order_.last.get(), this}; }
  [[nodiscard]] ConstIterator begin() const noexcept { return {order_.first.get(), this}; }
  [[nodiscard]] ConstIterator end() const noexcept { return {nullptr, this}; }
  [[nodiscard]] ConstIterator last() const noexcept { return {order_.last.get(), this}; }

  /// Slots that the longest search for an entry reads, which says how well the keys are spread. O(capacity).
  [[nodiscard]] std::size_t longest_search() const noexcept { return index_.longest_search(); }

  /// Whether index and order agree, for tests. O(capacity).
  [[nodiscard]] bool invariants_hold() const;

 private:
  template <class, class, class, class>
  friend class container::NodeIterator;
  template <class N>
  static N* next_of(N* node, container::NoHint) noexcept {
    return Order::following(node);
  }
  template <class N>
  static N* previous_of(N* node, container::NoHint) noexcept {
    return node->previous_.get();
  }
  template <class N>
  static auto& value_of(N* node) noexcept {
    return node->entry;
  }
  Node* last_node() const noexcept { return order_.last.get(); }

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
    return typename Index::Walk{order_.first.get(),
                                [](const void* node, Hash& hash, SlotLink& link) noexcept -> const void* {
                                  Node* const at = static_cast<Node*>(const_cast<void*>(node));
                                  hash = hash_of(at->entry.key);
                                  link = SlotLink(at);
                                  return at->next_.get();
                                }};
  }

  // The path that fills a map of dense numbers is inline: it takes a quarter less time than a call.
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

  // Out of line, as everything but the search is: the search takes most of the time, and each caller would copy this.
  template <class... Arguments>
  Node* add_slow(Place place, Hash hash, bool front, Arguments&&... arguments);

  // A node in its place in the order; the block is freed when the constructor throws.
  template <class... Arguments>
  [[gnu::always_inline]] Node* make(void* block, bool front, Arguments&&... arguments) {
    Node* node;
    try {
      node = ::new (block) Node(std::forward<Arguments>(arguments)...);
    } catch (...) {
      blocks_.deallocate(block);
      throw;
    }
    order_.link_before(node, front ? order_.first.get() : nullptr);
    return node;
  }

  void erase_at(Place place) noexcept;
  void destroy_nodes() noexcept;

  void take(HashMap& other) noexcept {
    index_.swap(other.index_);
    size_ = std::exchange(other.size_, 0);
    order_ = std::exchange(other.order_, Order());
  }

  [[no_unique_address]] Index index_;
  Order order_;
  std::uint32_t size_ = 0;
  [[no_unique_address]] Blocks blocks_;
};

static_assert(sizeof(HashMap<int, int>) <= 40);

}  // namespace blockyard

#include "blockyard/detail/hash_map_parts.hpp"

#endif
