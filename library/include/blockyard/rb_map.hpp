/// RBMap<K, V>: an ordered map with the interface of Godot's RBMap. Not a red-black tree in spite of its name: a B-tree
/// of links to elements (detail/ordered_tree.hpp). An element's address never changes.
///
/// Time: insert, find and erase take O(log n); next and prev O(1) amortised; clear O(n). A find in a million elements
/// reads two places outside of the nearer caches: a leaf and the element. Memory: per element a 32-bit link, key and
/// value, and about 10 bytes of tree for small keys: 23 bytes in all for two ints. The object is 16 bytes, 24 with
/// DirectBlocks. Tree nodes always come from the static pools.
///
/// Comparator: C, an object of which the map holds, is called as less(a, b): whether a comes before b. A move copies
/// it. With a type is_transparent, look-ups also take what it compares with a key. Keys that are trivially copyable and
/// at most 8 bytes are compared as copies. Strings, and types that OrderedBytes (ordered_bytes.hpp) is specialised for,
/// are compared by 8 of their bytes with the default comparator; the tree then takes 13 to 17 bytes per element. The
/// default comparator uses <=> where keys have it.
///
/// Exceptions: std::bad_alloc, and what keys, values and comparator throw. The map is then as before. Thread-safety: as
/// std::map. Pointers to elements and iterators stay valid until their own element is erased.
#ifndef BLOCKYARD_RB_MAP_HPP
#define BLOCKYARD_RB_MAP_HPP

#include <initializer_list>
#include <iterator>
#include <utility>

#include "blockyard/detail/ordered_container.hpp"
#include "blockyard/hash.hpp"

namespace blockyard {

template <class K, class V, class C = container::LessDefault, class A = StaticBlocks>
class RBMap : public container::OrderedContainer<RBMap<K, V, C, A>, K, KeyValue<K, V>, C, A> {
  using Base = container::OrderedContainer<RBMap, K, KeyValue<K, V>, C, A>;
  using typename Base::Blocks;

 public:
  using Element = typename Base::Element;
  using Base::Base;
  RBMap() = default;
  /// Of pairs, or entries of another map.
  template <std::input_iterator I, std::sentinel_for<I> S>
  RBMap(I first, S last, C less = C(), Blocks blocks = Blocks()) : Base(std::move(less), std::move(blocks)) {
    for (; first != last; ++first) {
      const auto& [key, value] = *first;
      insert(key, value);
    }
  }
  RBMap(std::initializer_list<std::pair<K, V>> entries, Blocks blocks = Blocks()) : Base(std::move(blocks)) {
    for (const std::pair<K, V>& entry : entries) {
      insert(entry.first, entry.second);
    }
  }

  /// Keeps a shared allocator.
  RBMap& operator=(std::initializer_list<std::pair<K, V>> entries) {
    return *this = RBMap(entries, this->blocks_for_copy());
  }

  /// Inserts a key with a value, or assigns the value if the key is there. The element.
  Element* insert(const K& key, const V& value) { return assign(key, value); }
  Element* insert(const K& key, V&& value) { return assign(key, std::move(value)); }
  Element* insert(K&& key, V&& value) { return assign(std::move(key), std::move(value)); }

  /// Inserts a key with a value made of `value`, unless the key is there: then nothing is made or moved from. V need
  /// neither be assignable nor have a default. The element, and whether it is new.
  template <class... Value>
  std::pair<Element*, bool> try_emplace(const K& key, Value&&... value) {
    return this->emplaced(key, std::in_place, key, std::forward<Value>(value)...);
  }
  template <class... Value>
  std::pair<Element*, bool> try_emplace(K&& key, Value&&... value) {
    return this->emplaced(key, std::in_place, std::move(key), std::forward<Value>(value)...);
  }
  /// The same, with what a K can be made of.
  template <class Key, class... Value>
  std::pair<Element*, bool> emplace(Key&& key, Value&&... value) {
    if constexpr (std::is_same_v<std::remove_cvref_t<Key>, K>) {
      return try_emplace(std::forward<Key>(key), std::forward<Value>(value)...);
    } else {
      return try_emplace(K(std::forward<Key>(key)), std::forward<Value>(value)...);
    }
  }

  /// The value of a key, inserted as V() if it is not there.
  V& operator[](const K& key) { return this->find_or_add(key, std::in_place, key)->value(); }
  V& operator[](K&& key) { return this->find_or_add(key, std::in_place, std::move(key))->value(); }
  /// The value of a key that is there; throws std::out_of_range if not.
  [[nodiscard]] const V& operator[](const K& key) const { return at(key); }
  [[nodiscard]] const V& at(const K& key) const { return value_of(this->find(key)); }
  [[nodiscard]] V& at(const K& key) { return const_cast<V&>(std::as_const(*this).at(key)); }
  /// The same by what stands for a key.
  template <class Q>
  requires(Base::template stands_for_key<Q>) [[nodiscard]] const V& at(const Q& key) const {
    return value_of(this->find(key));
  }
  template <class Q>
  requires(Base::template stands_for_key<Q>) [[nodiscard]] V& at(const Q& key) {
    return const_cast<V&>(value_of(this->find(key)));
  }

 private:
  static const V& value_of(const Element* element) {
    if (element == nullptr) {
      block::throw_out_of_range("blockyard::RBMap: no such key");
    }
    return element->value();
  }
  template <class Key, class Value>
  Element* assign(Key&& key, Value&& value) {
    auto place = this->place_of(key);
    if (place.found != nullptr) {
      place.found->value() = std::forward<Value>(value);
      return place.found;
    }
    const auto replace = [](Element* there, Element* made) { there->value() = std::move(made->value()); };
    return this->add(place, replace, std::in_place, std::forward<Key>(key), std::forward<Value>(value));
  }
};

static_assert(sizeof(RBMap<int, int>) <= 24);

}  // namespace blockyard

#endif
