/// RBMap<K, V>: an ordered map with the engine's interface. Its name is the engine's: what stands under it is no
/// red-black tree but a B-tree of links to elements (ordered_index.hpp), four to six times as fast; elements never
/// move.
///
/// Bounds: insert, find and erase O(log size); of what a find in a million elements touches, a leaf and the element lie
/// outside of the caches nearby; next and prev O(1) amortised; clear O(size). Memory: a 32-bit link, key and value an
/// element, and about 10 bytes of tree for small keys (23 bytes in all for two ints). The object is 16 bytes, 24 with
/// DirectBlocks. Tree nodes come from the static pools in any case.
///
/// Comparator: C()(a, b) is whether a comes before b. Keys that are trivially copyable and at most 8 bytes are compared
/// as copies.
///
/// Exceptions: std::bad_alloc, and what keys, values and comparator throw; the map is then as before. Thread-safety: as
/// std::map.
#ifndef BLOCKYARD_RB_MAP_HPP
#define BLOCKYARD_RB_MAP_HPP

#include <cstddef>
#include <initializer_list>
#include <iterator>
#include <memory>
#include <new>
#include <utility>

#include "blockyard/detail/ordered_container.hpp"
#include "blockyard/hash.hpp"

namespace blockyard {

template <class K, class V, class C = container::LessDefault, class A = StaticBlocks>
class RBMap : public container::OrderedContainer<RBMap<K, V, C, A>, container::MapEntry<K, V>, C, A> {
  using Base = container::OrderedContainer<RBMap, container::MapEntry<K, V>, C, A>;

 public:
  using Element = typename Base::Element;
  using Base::Base;
  RBMap() = default;
  RBMap(std::initializer_list<std::pair<K, V>> entries) {
    for (const std::pair<K, V>& entry : entries) {
      insert(entry.first, entry.second);
    }
  }

  /// Enters a key with a value, or gives a present key that value.
  Element* insert(const K& key, const V& value) {
    auto place = this->index_.place_of(key);
    if (place.found != nullptr) {
      place.found->value() = value;
      return place.found;
    }
    return this->add(place, key, value);
  }
  Element* insert(K&& key, V&& value) {
    auto place = this->index_.place_of(key);
    if (place.found != nullptr) {
      place.found->value() = std::move(value);
      return place.found;
    }
    return this->add(place, std::move(key), std::move(value));
  }

  /// The value of a key, entered as V() when it is not there.
  [[nodiscard]] V& operator[](const K& key) {
    auto place = this->index_.place_of(key);
    Element* const element = place.found != nullptr ? place.found : this->add(place, key);
    return element->value();
  }
  /// The value of a key that is there; throws std::out_of_range if not.
  [[nodiscard]] const V& operator[](const K& key) const {
    const Element* const element = this->find(key);
    if (element == nullptr) {
      block::throw_out_of_range("blockyard::RBMap: no such key");
    }
    return element->value();
  }
};

static_assert(sizeof(RBMap<int, int>) <= 24);

}  // namespace blockyard

#endif
