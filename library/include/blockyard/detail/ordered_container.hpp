/// What RBMap and RBSet have in common. Programs include rb_map.hpp or rb_set.hpp.
#ifndef BLOCKYARD_DETAIL_ORDERED_CONTAINER_HPP
#define BLOCKYARD_DETAIL_ORDERED_CONTAINER_HPP

#include <cstddef>
#include <memory>
#include <new>
#include <type_traits>
#include <utility>

#include "blockyard/detail/node_iterator.hpp"
#include "blockyard/detail/ordered_index.hpp"
#include "blockyard/hash.hpp"
#include "blockyard/node_blocks.hpp"

namespace blockyard::container {

/// What an element of RBMap holds.
template <class K, class V>
struct MapEntry {
  using Key = K;
  using Visible = KeyValue<K, V>;

  template <class... Arguments>
  explicit MapEntry(Arguments&&... arguments) : data(std::in_place, std::forward<Arguments>(arguments)...) {}

  [[nodiscard]] const K& key() const noexcept { return data.key; }
  [[nodiscard]] V& get() noexcept { return data.value; }
  [[nodiscard]] const V& get() const noexcept { return data.value; }

  Visible data;
};

/// What an element of RBSet holds.
template <class T>
struct SetEntry {
  using Key = T;
  using Visible = const T;

  template <class... Arguments>
  explicit SetEntry(Arguments&&... arguments) : data(std::forward<Arguments>(arguments)...) {}

  [[nodiscard]] const T& key() const noexcept { return data; }
  [[nodiscard]] const T& get() const noexcept { return data; }

  Visible data;
};

template <class Derived, class Entry, class C, class A>
class OrderedContainer {
 public:
  class Element;

 private:
  using K = typename Entry::Key;
  using Blocks = typename A::template For<Element>;
  using Links =
      std::conditional_t<std::is_same_v<typename Blocks::template Link<void>, NearLink<void>>, NearLinks, FarLinks>;
  using Index = OrderedIndex<Element, K, C, Links>;

 public:
  class Element : TreeElement<Links> {
   public:
    /// What leak reports call it.
    using ReportedAs = Derived;

    [[nodiscard]] const K& key() const noexcept { return entry_.key(); }
    [[nodiscard]] auto& value() noexcept { return entry_.get(); }
    [[nodiscard]] auto& value() const noexcept { return entry_.get(); }
    [[nodiscard]] auto& get() noexcept { return entry_.get(); }
    [[nodiscard]] auto& get() const noexcept { return entry_.get(); }
    [[nodiscard]] auto& key_value() noexcept { return entry_.data; }
    [[nodiscard]] auto& key_value() const noexcept { return entry_.data; }
    [[nodiscard]] auto& operator*() noexcept { return entry_.get(); }
    [[nodiscard]] auto* operator->() noexcept { return &entry_.get(); }

    /// The neighbours in order, nullptr at the ends. O(1) amortised, and a search among at most 63 links.
    [[nodiscard]] Element* next() noexcept { return step(&Index::next); }
    [[nodiscard]] const Element* next() const noexcept { return const_cast<Element*>(this)->next(); }
    [[nodiscard]] Element* prev() noexcept { return step(&Index::previous); }
    [[nodiscard]] const Element* prev() const noexcept { return const_cast<Element*>(this)->prev(); }

   private:
    friend class OrderedContainer;
    friend Index;

    template <class... Arguments>
    explicit Element(Arguments&&... arguments) : entry_(std::forward<Arguments>(arguments)...) {}
    Element* step(Element* (*to)(const Element*, unsigned&)) const noexcept {
      unsigned unknown = ~0u;
      return to(this, unknown);
    }

    Entry entry_;
  };

  // An iterator remembers where in its tree node its element is, as a rule.
  using Iterator = NodeIterator<OrderedContainer, Element, typename Entry::Visible, unsigned>;
  using ConstIterator = NodeIterator<OrderedContainer, const Element, const typename Entry::Visible, unsigned>;
  using iterator = Iterator;
  using const_iterator = ConstIterator;

  /// What a BlockAllocator for the elements must fit.
  static constexpr std::size_t block_bytes() { return sizeof(Element); }
  static constexpr std::size_t block_alignment() { return alignof(Element); }

  constexpr OrderedContainer() noexcept = default;
  /// Takes its elements from `blocks` (DirectBlocks: a BlockAllocator&).
  explicit OrderedContainer(Blocks blocks) noexcept : blocks_(std::move(blocks)) {}
  // Delegates, so that what has been copied ends when a further copy throws.
  OrderedContainer(const OrderedContainer& other) : OrderedContainer(other.blocks_.for_copy()) {
    for (const Element* element = other.front(); element != nullptr; element = element->next()) {
      auto place = index_.place_of(element->key());
      add(place, *element);
    }
  }
  OrderedContainer(OrderedContainer&& other) noexcept : blocks_(std::move(other.blocks_)) { index_.swap(other.index_); }
  OrderedContainer& operator=(const OrderedContainer& other) {
    if (this != &other) {
      OrderedContainer copy(other);
      swap(copy);
    }
    return *this;
  }
  OrderedContainer& operator=(OrderedContainer&& other) noexcept {
    if (this != &other) {
      clear();
      index_.swap(other.index_);
      blocks_ = std::move(other.blocks_);
    }
    return *this;
  }
  ~OrderedContainer() { clear(); }

  void swap(OrderedContainer& other) noexcept {
    index_.swap(other.index_);
    blocks_.swap(other.blocks_);
  }
  friend void swap(Derived& a, Derived& b) noexcept { a.swap(b); }

  [[nodiscard]] std::size_t size() const noexcept { return index_.size(); }
  [[nodiscard]] bool is_empty() const noexcept { return size() == 0; }

  /// The element of a key, nullptr if it is not there.
  [[nodiscard]] Element* find(const K& key) { return index_.find(key); }
  [[nodiscard]] const Element* find(const K& key) const { return index_.find(key); }
  [[nodiscard]] bool has(const K& key) const { return index_.find(key) != nullptr; }
  /// The first element whose key is not less than `key`, nullptr if none.
  [[nodiscard]] Element* lower_bound(const K& key) { return index_.lower_bound(key); }
  [[nodiscard]] const Element* lower_bound(const K& key) const { return index_.lower_bound(key); }
  /// The last element whose key is not greater than `key`, nullptr if none.
  [[nodiscard]] Element* find_closest(const K& key) { return index_.closest(key); }
  [[nodiscard]] const Element* find_closest(const K& key) const { return index_.closest(key); }

  /// Removes and destroys an element of this container. nullptr is a no-op.
  void erase(Element* element) noexcept {
    if (element != nullptr) {
      erase_at(Index::place_of(element));
    }
  }
  /// Removes a key; whether it was there.
  bool erase(const K& key) {
    const auto place = index_.place_of(key);
    if (place.found != nullptr) {
      erase_at(place);
    }
    return place.found != nullptr;
  }
  /// Removes the element of an iterator; nothing happens at the end. The iterator is invalid afterwards.
  void remove(const ConstIterator& at) noexcept { erase(const_cast<Element*>(at.element())); }

  /// The first and the last element in order, nullptr when empty.
  [[nodiscard]] Element* front() noexcept { return index_.first(); }
  [[nodiscard]] const Element* front() const noexcept { return index_.first(); }
  [[nodiscard]] Element* back() noexcept { return index_.last(); }
  [[nodiscard]] const Element* back() const noexcept { return index_.last(); }

  [[nodiscard]] Iterator begin() noexcept { return {front(), this}; }
  [[nodiscard]] Iterator end() noexcept { return {nullptr, this}; }
  [[nodiscard]] ConstIterator begin() const noexcept { return {front(), this}; }
  [[nodiscard]] ConstIterator end() const noexcept { return {nullptr, this}; }

  void clear() noexcept {
    if constexpr (Blocks::can_reset) {
      if (blocks_.is_own()) {
        index_.template clear<!std::is_trivially_destructible_v<Element>>(
            [](Element* element) { std::destroy_at(element); });
        blocks_.reset();
        return;
      }
    }
    index_.template clear<true>([this](Element* element) {
      std::destroy_at(element);
      blocks_.deallocate(element);
    });
  }

  /// Levels of the tree; 0 when empty.
  [[nodiscard]] int calculate_depth() const noexcept { return static_cast<int>(index_.depth()); }

  /// Walks the tree: for tests. O(size).
  [[nodiscard]] bool invariants_hold() const { return index_.invariants_hold(); }

 protected:
  template <class... Arguments>
  [[gnu::noinline]] Element* add(typename Index::Place& place, Arguments&&... arguments) {
    void* const block = blocks_.allocate();
    Element* element;
    try {
      element = ::new (block) Element(std::forward<Arguments>(arguments)...);
    } catch (...) {
      give_back(block);
      throw;
    }
    try {
      index_.make_room(place);
    } catch (...) {
      destroy(element);
      throw;
    }
    index_.insert(place, element);
    return element;
  }

  Index index_;
  [[no_unique_address]] Blocks blocks_;

 private:
  template <class, class, class, class>
  friend class NodeIterator;
  static Element* next_of(const Element* element, unsigned& hint) noexcept { return Index::next(element, hint); }
  static Element* previous_of(const Element* element, unsigned& hint) noexcept {
    return Index::previous(element, hint);
  }
  template <class E>
  static auto& value_of(E* element) noexcept {
    return element->key_value();
  }
  Element* last_node() const noexcept { return index_.last(); }

  [[gnu::noinline]] void erase_at(const typename Index::Place& place) noexcept {
    index_.erase(place);
    destroy(place.found);
  }

  void destroy(Element* element) noexcept {
    std::destroy_at(element);
    give_back(element);
  }
  // Out of line: what is thrown past needs no speed, and what is erased has been searched for.
  [[gnu::noinline]] void give_back(void* block) noexcept { blocks_.deallocate(block); }
};

}  // namespace blockyard::container

#endif
