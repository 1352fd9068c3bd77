/// HashMap<K, V>: a hash table with the engine's interface that keeps insertion order; an entry's address never
/// changes.
///
/// Bounds: insert, find and erase O(1) expected, with one access to the slot array and one to the node; growing the
/// slot array is O(size) and touches no node. clear O(size). Iteration follows the order of insertion, which is as a
/// rule the order in memory. Memory: a node of two links, key and value (16 bytes for two ints), and 8 bytes a slot, at
/// least 13/24 of them in use once it has grown: 26 to 31 bytes an entry of two ints. The object is 24 bytes, 32 with
/// DirectBlocks. At most 2.6 * 10^9 entries.
///
/// Hasher has a static hash(const K&) that returns an integer; Comparator a static compare(a, b) for equality.
///
/// Exceptions: std::bad_alloc, and what keys, values, hasher and comparator throw; the map is then as before.
/// Thread-safety: as std::unordered_map. Iterators and pointers stay valid until their own entry is erased.
#ifndef BLOCKYARD_HASH_MAP_HPP
#define BLOCKYARD_HASH_MAP_HPP

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <iterator>
#include <memory>
#include <new>
#include <type_traits>
#include <utility>
#include <vector>

#include "blockyard/hash.hpp"
#include "blockyard/hash_slots.hpp"
#include "blockyard/node_blocks.hpp"

namespace blockyard {

template <class K, class V, class Hasher = HasherDefault, class Comparator = ComparatorDefault<K>,
          class A = StaticBlocks>
class HashMap {
  struct Node;
  using Blocks = typename A::template For<Node>;
  using NodeLink = typename Blocks::template Link<Node>;
  using SlotLink = typename Blocks::template Link<void>;
  using Slots = container::HashSlots<SlotLink>;
  using Slot = typename Slots::Slot;
  using Place = typename Slots::Place;

  // Slots' links are untyped, in units of 8 bytes.
  struct alignas(8) alignas(KeyValue<K, V>) Node {
    template <class... Arguments>
    explicit Node(Arguments&&... arguments) : entry(std::in_place, std::forward<Arguments>(arguments)...) {}

    NodeLink next;
    NodeLink previous;
    KeyValue<K, V> entry;
  };

  template <class N, class E>
  class BasicIterator {
   public:
    using iterator_category = std::bidirectional_iterator_tag;
    using value_type = KeyValue<K, V>;
    using difference_type = std::ptrdiff_t;
    using pointer = E*;
    using reference = E&;

    constexpr BasicIterator() = default;
    /// An iterator converts to a const one.
    operator BasicIterator<const Node, const KeyValue<K, V>>() const noexcept { return {node_, map_}; }  // NOLINT

    [[nodiscard]] E& operator*() const noexcept { return node_->entry; }
    [[nodiscard]] E* operator->() const noexcept { return &node_->entry; }
    /// Whether this is an entry, not the end.
    [[nodiscard]] explicit operator bool() const noexcept { return node_ != nullptr; }

    BasicIterator& operator++() noexcept {
      node_ = following(node_);
      return *this;
    }
    BasicIterator operator++(int) noexcept {
      BasicIterator old = *this;
      ++*this;
      return old;
    }
    /// From the end: to the last entry.
    BasicIterator& operator--() noexcept {
      node_ = node_ != nullptr ? node_->previous.get() : map_->last_.get();
      return *this;
    }
    BasicIterator operator--(int) noexcept {
      BasicIterator old = *this;
      --*this;
      return old;
    }
    friend bool operator==(const BasicIterator& a, const BasicIterator& b) noexcept { return a.node_ == b.node_; }

   private:
    friend class HashMap;
    template <class, class>
    friend class BasicIterator;
    BasicIterator(N* node, const HashMap* map) noexcept : node_(node), map_(map) {}

    // As in List: the guess that the next node lies next in memory must not wait for the link.
    static N* following(N* node) noexcept {
      N* const guess = node + 1;
      const N* hidden = guess;
      asm("" : "+r"(hidden));
      __builtin_prefetch(reinterpret_cast<const char*>(node) + 8192);
      if (node->next.certain() == hidden) [[likely]] {
        return guess;
      }
      return node->next.get();
    }

    N* node_ = nullptr;
    const HashMap* map_ = nullptr;
  };

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
      slots_.release();
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
    slots_.swap(other.slots_);
    std::swap(size_, other.size_);
    std::swap(first_, other.first_);
    std::swap(last_, other.last_);
    blocks_.swap(other.blocks_);
  }
  friend void swap(HashMap& a, HashMap& b) noexcept { a.swap(b); }

  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  [[nodiscard]] bool is_empty() const noexcept { return size_ == 0; }
  /// Slots. The map grows when thirteen sixteenths of them are in use.
  [[nodiscard]] std::size_t get_capacity() const noexcept { return slots_.capacity(); }

  /// Makes room for `entries` in all, so that no insert up to there grows the slot array. Throws std::bad_alloc.
  void reserve(std::size_t entries) {
    if (entries > slots_.limit() && !slots_.reserve(entries)) {
      block::throw_bad_alloc();
    }
  }

  /// Enters a key with a value, or gives a present key that value; at the end of the order, or with `front` at its
  /// beginning.
  Iterator insert(const K& key, const V& value, bool front = false) {
    const std::uint32_t hash = hash_of(key);
    const Place place = place_of(key, hash);
    if (place.there) {
      Node* const node = node_at(place.slot->link);
      node->entry.value = value;
      return {node, this};
    }
    return {add(place, hash, front, key, value), this};
  }
  Iterator insert(K&& key, V&& value, bool front = false) {
    const std::uint32_t hash = hash_of(key);
    const Place place = place_of(key, hash);
    if (place.there) {
      Node* const node = node_at(place.slot->link);
      node->entry.value = std::move(value);
      return {node, this};
    }
    return {add(place, hash, front, std::move(key), std::move(value)), this};
  }

  /// The value of a key, entered as V() when it is not there.
  [[nodiscard]] V& operator[](const K& key) {
    const std::uint32_t hash = hash_of(key);
    const Place place = place_of(key, hash);
    return (place.there ? node_at(place.slot->link) : add(place, hash, false, key))->entry.value;
  }
  [[nodiscard]] V& operator[](K&& key) {
    const std::uint32_t hash = hash_of(key);
    const Place place = place_of(key, hash);
    return (place.there ? node_at(place.slot->link) : add(place, hash, false, std::move(key)))->entry.value;
  }

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
    const Slot* const slot = search(key, hash_of(key));
    if (slot == nullptr) {
      return false;
    }
    erase_at(slot);
    return true;
  }

  /// Removes the entry of an iterator; nothing happens at the end. The iterator is invalid afterwards.
  void remove(const ConstIterator& at) {
    if (at) {
      erase_at(search(at.node_, hash_of(at->key)));
    }
  }

  /// Gives an entry another key and keeps its address, value and place in the order. False, and nothing changed, when
  /// `old_key` is not there or `new_key` is. If assigning the key throws, the entry is as before.
  bool replace_key(const K& old_key, const K& new_key) {
    const std::uint32_t old_hash = hash_of(old_key);
    const Slot* const slot = search(old_key, old_hash);
    if (slot == nullptr) {
      return false;
    }
    const std::uint32_t new_hash = hash_of(new_key);
    if (Node* const other = lookup(new_key, new_hash); other != nullptr) {
      return false;
    }
    const SlotLink link = slot->link;
    const_cast<K&>(node_at(link)->entry.key) = new_key;
    slots_.erase(slot);
    slots_.insert(new_hash, link);
    return true;
  }

  /// Destroys all entries and keeps slots and allocator. O(size + capacity).
  void clear() noexcept {
    if (size_ != 0) {
      destroy_nodes();
      slots_.clear();
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
  void sort_by(C&& less) {
    std::vector<Node*> order;
    order.reserve(size_);
    for (Node* node = first_.get(); node != nullptr; node = node->next.get()) {
      order.push_back(node);
    }
    std::stable_sort(order.begin(), order.end(),
                     [&](const Node* a, const Node* b) { return less(a->entry, b->entry); });
    first_ = last_ = NodeLink();
    for (Node* const node : order) {
      link_node(node, false);
    }
  }

  [[nodiscard]] Iterator begin() noexcept { return {first_.get(), this}; }
  [[nodiscard]] Iterator end() noexcept { return {nullptr, this}; }
  /// The last entry; end() when the map is empty.
  [[nodiscard]] Iterator last() noexcept { return {last_.get(), this}; }
  [[nodiscard]] ConstIterator begin() const noexcept { return {first_.get(), this}; }
  [[nodiscard]] ConstIterator end() const noexcept { return {nullptr, this}; }
  [[nodiscard]] ConstIterator last() const noexcept { return {last_.get(), this}; }

  /// Checks slots and order against each other: for tests. O(capacity).
  [[nodiscard]] bool invariants_hold() const {
    std::size_t count = 0;
    const Node* previous = nullptr;
    for (const Node* node = first_.get(); node != nullptr; node = node->next.get()) {
      if (node->previous.get() != previous || ++count > size_ || search(node, hash_of(node->entry.key)) == nullptr) {
        return false;
      }
      previous = node;
    }
    return previous == last_.get() && count == size_ && slots_.invariants_hold(size_);
  }

 private:
  /// Ends a half-made map when its construction throws.
  class Guard {
   public:
    explicit Guard(HashMap* map) : map_(map) {}
    ~Guard() {
      if (map_ != nullptr) {
        map_->destroy_nodes();
      }
    }
    Guard(const Guard&) = delete;
    Guard& operator=(const Guard&) = delete;
    void release() { map_ = nullptr; }

   private:
    HashMap* map_;
  };

  static std::uint32_t hash_of(const K& key) { return Slots::mix(static_cast<std::uint64_t>(Hasher::hash(key))); }
  static Node* node_at(SlotLink link) noexcept { return static_cast<Node*>(link.certain()); }

  Place place_of(const K& key, std::uint32_t hash) const {
    return slots_.find_place(hash, [&](SlotLink link) { return Comparator::compare(node_at(link)->entry.key, key); });
  }
  const Slot* search(const K& key, std::uint32_t hash) const {
    return slots_.find(hash, [&](SlotLink link) { return Comparator::compare(node_at(link)->entry.key, key); });
  }
  const Slot* search(const Node* node, std::uint32_t hash) const noexcept {
    return slots_.find(hash, [node](SlotLink link) { return node_at(link) == node; });
  }
  Node* lookup(const K& key, std::uint32_t hash) const {
    const Slot* const slot = search(key, hash);
    return slot == nullptr ? nullptr : node_at(slot->link);
  }

  // Out of line, as everything is that is not a search: the search dominates its time, and it would be copied into each
  // caller.
  template <class... Arguments>
  [[gnu::noinline]] Node* add(Place place, std::uint32_t hash, bool front, Arguments&&... arguments) {
    const bool grows = size_ >= slots_.limit();
    if (grows && !slots_.reserve(std::size_t{size_} + 1)) {
      block::throw_bad_alloc();
    }
    void* const block = blocks_.allocate();
    Node* node;
    try {
      node = ::new (block) Node(std::forward<Arguments>(arguments)...);
    } catch (...) {
      blocks_.deallocate(block);
      throw;
    }
    link_node(node, front);
    if (grows) [[unlikely]] {
      slots_.insert(hash, SlotLink(node));
    } else {
      slots_.insert_at(place.slot, hash, SlotLink(node));
    }
    ++size_;
    return node;
  }

  void link_node(Node* node, bool front) noexcept {
    const NodeLink link(node);
    if (front) {
      node->previous = NodeLink();
      node->next = first_;
      (first_ ? first_.certain()->previous : last_) = link;
      first_ = link;
    } else {
      node->next = NodeLink();
      node->previous = last_;
      (last_ ? last_.certain()->next : first_) = link;
      last_ = link;
    }
  }

  [[gnu::noinline]] void erase_at(const Slot* slot) noexcept {
    Node* const node = node_at(slot->link);
    slots_.erase(slot);
    (node->previous ? node->previous.certain()->next : first_) = node->next;
    (node->next ? node->next.certain()->previous : last_) = node->previous;
    --size_;
    std::destroy_at(node);
    blocks_.deallocate(node);
  }

  [[gnu::noinline]] void destroy_nodes() noexcept {
    Node* node = first_.get();
    first_ = last_ = NodeLink();
    size_ = 0;
    if constexpr (Blocks::can_reset) {
      if (node != nullptr && blocks_.is_own()) {
        if constexpr (!std::is_trivially_destructible_v<KeyValue<K, V>>) {
          for (; node != nullptr; node = node->next.get()) {
            std::destroy_at(&node->entry);
          }
        }
        blocks_.reset();
        return;
      }
    }
    while (node != nullptr) {
      Node* const next = Iterator::following(node);
      std::destroy_at(node);
      blocks_.deallocate(node);
      node = next;
    }
  }

  void take(HashMap& other) noexcept {
    slots_.swap(other.slots_);
    size_ = std::exchange(other.size_, 0);
    first_ = std::exchange(other.first_, NodeLink());
    last_ = std::exchange(other.last_, NodeLink());
  }

  Slots slots_;
  NodeLink first_;
  NodeLink last_;
  std::uint32_t size_ = 0;
  [[no_unique_address]] Blocks blocks_;
};

static_assert(sizeof(HashMap<int, int>) <= 40);

}  // namespace blockyard

#endif
