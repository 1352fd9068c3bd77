/// HashMap's nodes, and its functions that are no search. Included by hash_map.hpp, at its end.
#ifndef BLOCKYARD_DETAIL_HASH_MAP_PARTS_HPP
#define BLOCKYARD_DETAIL_HASH_MAP_PARTS_HPP

#include <memory>
#include <new>
#include <type_traits>
#include <utility>

#include "blockyard/hash_map.hpp"

namespace blockyard {

// The index links nodes in units of 8 bytes, whatever their type.
template <class K, class V, class Hasher, class Comparator, class A>
struct alignas(8) alignas(KeyValue<K, V>) HashMap<K, V, Hasher, Comparator, A>::Node : container::OrderLinks<NodeLink> {
  template <class... Arguments>
  explicit Node(Arguments&&... arguments) : entry(std::in_place, std::forward<Arguments>(arguments)...) {}

  KeyValue<K, V> entry;
};

template <class K, class V, class Hasher, class Comparator, class A>
[[gnu::noinline]] void HashMap<K, V, Hasher, Comparator, A>::erase_at(Place place) noexcept {
  Node* const node = node_at(*place.link);
  index_.erase(place);
  --size_;
  order_.unlink(node);
  std::destroy_at(node);
  blocks_.deallocate(node);
}

template <class K, class V, class Hasher, class Comparator, class A>
[[gnu::noinline]] void HashMap<K, V, Hasher, Comparator, A>::destroy_nodes() noexcept {
  const Order order = std::exchange(order_, Order());
  size_ = 0;
  bool frees = true;
  if constexpr (Blocks::can_reset) {
    frees = !blocks_.is_own();
  }
  if (frees || !std::is_trivially_destructible_v<KeyValue<K, V>>) {
    for (Node* node = order.first.get(); node != nullptr;) {
      Node* const next = node->next_.get();
      std::destroy_at(node);
      if (frees) {
        blocks_.deallocate(node);
      }
      node = next;
    }
  }
  if constexpr (Blocks::can_reset) {
    if (order.first) {
      blocks_.reset();  // does nothing unless the allocator is the map's own
    }
  }
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
bool HashMap<K, V, Hasher, Comparator, A>::invariants_hold() const {
  if (!order_.invariants_hold(size_)) {
    return false;
  }
  for (const Node* node = order_.first.get(); node != nullptr; node = node->next_.get()) {
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
