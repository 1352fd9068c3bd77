/// What a HashMap is made of: its nodes and iterators, and what of it is no search. Inside of hash_map.hpp.
#ifndef BLOCKYARD_DETAIL_HASH_MAP_PARTS_HPP
#define BLOCKYARD_DETAIL_HASH_MAP_PARTS_HPP

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <memory>
#include <new>
#include <type_traits>
#include <utility>
#include <vector>

#include "blockyard/hash_map.hpp"

namespace blockyard {

// Slots' links are untyped, in units of 8 bytes.
template <class K, class V, class Hasher, class Comparator, class A>
struct alignas(8) alignas(KeyValue<K, V>) HashMap<K, V, Hasher, Comparator, A>::Node
    : std::conditional_t<is_packed(), Packed, Linked> {
  using Order = std::conditional_t<is_packed(), container::PackedOrder<Node>, container::LinkedOrder<Node>>;

  template <class... Arguments>
  explicit Node(Arguments&&... arguments) : entry(std::in_place, std::forward<Arguments>(arguments)...) {}

  KeyValue<K, V> entry;
};

template <class K, class V, class Hasher, class Comparator, class A>
template <class N, class E>
class HashMap<K, V, Hasher, Comparator, A>::BasicIterator {
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
    node_ = node_ != nullptr ? Node::Order::previous(node_) : map_->ends_.last.get();
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

  static N* following(N* node) noexcept {
    return container::guessed_next(node, Node::Order::is_next, Node::Order::next);
  }

  N* node_ = nullptr;
  const HashMap* map_ = nullptr;
};

/// Ends a half-made map when its construction throws.
template <class K, class V, class Hasher, class Comparator, class A>
class HashMap<K, V, Hasher, Comparator, A>::Guard {
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

template <class K, class V, class Hasher, class Comparator, class A>
[[gnu::noinline]] void HashMap<K, V, Hasher, Comparator, A>::erase_at(Place place) noexcept {
  Node* const node = node_at(*place.link);
  index_.erase(place);
  --size_;
  Node::Order::erase(ends_, node, blocks_);
}

template <class K, class V, class Hasher, class Comparator, class A>
[[gnu::noinline]] void HashMap<K, V, Hasher, Comparator, A>::destroy_nodes() noexcept {
  const Ends ends = std::exchange(ends_, Ends());
  size_ = 0;
  if constexpr (Blocks::can_reset) {
    if (ends.first && blocks_.is_own()) {
      if constexpr (is_packed() || !std::is_trivially_destructible_v<KeyValue<K, V>>) {
        Node::Order::destroy(ends, blocks_, false);
      }
      blocks_.reset();
      return;
    }
  }
  Node::Order::destroy(ends, blocks_, true);
}

template <class K, class V, class Hasher, class Comparator, class A>
bool HashMap<K, V, Hasher, Comparator, A>::replace_key(const K& old_key, const K& new_key) {
  const Hash old_hash = hash_of(old_key);
  const Place old_place = place_of(old_key, old_hash);
  if (!old_place.there) {
    return false;
  }
  const Hash new_hash = hash_of(new_key);
  const Place new_place = place_of(new_key, new_hash);
  if (new_place.there) {
    return false;
  }
  Node* const node = node_at(*old_place.link);
  if (has_number_keys && index_.must_grow(size_ - 1, new_place)) {
    grow(new_hash);
  }
  const_cast<K&>(node->entry.key) = new_key;
  index_.erase(index_.find_place(old_hash, [node](SlotLink link) { return node_at(link) == node; }));
  index_.insert(new_hash, SlotLink(node));
  return true;
}

template <class K, class V, class Hasher, class Comparator, class A>
template <class C>
void HashMap<K, V, Hasher, Comparator, A>::sort_by(C&& less) {
  std::vector<Node*> order;
  order.reserve(size_);
  for (Node* node = ends_.first.get(); node != nullptr; node = Node::Order::next(node)) {
    order.push_back(node);
  }
  std::stable_sort(order.begin(), order.end(), [&](const Node* a, const Node* b) { return less(a->entry, b->entry); });
  Node::Order::arrange(ends_, order, blocks_);
}

template <class K, class V, class Hasher, class Comparator, class A>
bool HashMap<K, V, Hasher, Comparator, A>::invariants_hold() const {
  if (!Node::Order::invariants_hold(ends_, size_)) {
    return false;
  }
  for (const Node* node = ends_.first.get(); node != nullptr; node = Node::Order::next(node)) {
    if (!place_of(node, hash_of(node->entry.key)).there) {
      return false;
    }
  }
  return index_.invariants_hold(size_);
}

template <class K, class V, class Hasher, class Comparator, class A>
template <class... Arguments>
[[gnu::noinline]] auto HashMap<K, V, Hasher, Comparator, A>::add_slow(Place place, Hash hash, bool front,
                                                                      Arguments&&... arguments) -> Node* {
  if (index_.must_grow(size_, place)) [[unlikely]] {
    grow(hash);
    place.link = nullptr;
  }
  Node* const node = make(blocks_.allocate(), front, std::forward<Arguments>(arguments)...);
  if (place.link == nullptr) [[unlikely]] {
    index_.insert(hash, SlotLink(node));
  } else {
    index_.insert_at(place, hash, SlotLink(node));
  }
  ++size_;
  return node;
}

template <class K, class V, class Hasher, class Comparator, class A>
template <class Key>
V& HashMap<K, V, Hasher, Comparator, A>::at_or_added(Key&& key) {
  const Hash hash = hash_of(key);
  const Place place = place_of(key, hash);
  if (place.there) {
    return node_at(*place.link)->entry.value;
  }
  if constexpr (std::is_trivially_copy_constructible_v<V>) {
    // Shares its code with insert().
    const V added = V();
    return add_slow(place, hash, false, std::forward<Key>(key), added)->entry.value;
  } else {
    return add_slow(place, hash, false, std::forward<Key>(key))->entry.value;
  }
}

}  // namespace blockyard

#endif
