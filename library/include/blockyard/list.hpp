/// List<T>: a doubly linked list with the interface of Godot's List. An element's address never changes.
///
/// Time: insert, remove, move and clear take O(1); clear takes O(n) where T has a destructor. find, get(i) and
/// erase(value) take O(n). sort takes O(n log n), and O(n) temporary memory. Memory: two 32-bit links per element, so
/// 12 bytes for an int; 8 bytes per list, and 16 or 24 more from the first element on. Over MallocBlocks the links are
/// pointers.
///
/// An element does not know its list, so List::erase(Element*) removes it. List<T, A, Owned> adds a pointer to each
/// element, and with it Element::erase() and Element::transfer_to_back().
///
/// A list that was moved from is empty. If it shared a BlockAllocator, it goes on with that one, unless memory for its
/// 16 bytes is exhausted.
///
/// Exceptions: std::bad_alloc, and what T's constructors or a comparison throw. The list is then as before.
/// Thread-safety: as std::list.
#ifndef BLOCKYARD_LIST_HPP
#define BLOCKYARD_LIST_HPP

#include <algorithm>
#include <cstddef>
#include <initializer_list>
#include <iterator>
#include <memory>
#include <new>
#include <type_traits>
#include <utility>

#include "blockyard/detail/nodes.hpp"
#include "blockyard/detail/standard_names.hpp"
#include "blockyard/node_blocks.hpp"

namespace blockyard {

/// For List: elements do not know their list.
struct Unowned {};
/// For List: elements know their list.
struct Owned {};

template <class T, class A = StaticBlocks, class Ownership = Unowned>
class List : public container::StandardNames<List<T, A, Ownership>> {
  static constexpr bool is_owned = std::is_same_v<Ownership, Owned>;
  struct State;
  struct NoOwner {};

 public:
  class Element;

 private:
  using Blocks = typename A::template For<Element>;
  using Link = typename Blocks::template Link<Element>;
  using StateLink = typename Blocks::template Link<State>;
  using Order = container::NodeOrder<Element, Link>;

  /// What a list has in addition to its pointer, from the first element on.
  struct State {
    explicit State(Blocks&& from) noexcept : blocks(std::move(from)) {}

    void link_before(Element* element, Element* where) noexcept {
      order.link_before(element, where);
      ++size;
    }
    void unlink(Element* element) noexcept {
      order.unlink(element);
      --size;
    }
    [[gnu::noinline]] void remove(Element* element) noexcept {
      unlink(element);
      container::Nodes::end(blocks, element);
    }

    Order order;
    std::size_t size = 0;
    [[no_unique_address]] Blocks blocks;
  };

 public:
  class Element : container::OrderLinks<Link> {
    using Links = container::OrderLinks<Link>;

   public:
    /// The neighbours, nullptr at the ends.
    [[nodiscard]] Element* next() noexcept { return Links::next_.get(); }
    [[nodiscard]] const Element* next() const noexcept { return Links::next_.get(); }
    [[nodiscard]] Element* prev() noexcept { return Links::previous_.get(); }
    [[nodiscard]] const Element* prev() const noexcept { return Links::previous_.get(); }

    [[nodiscard]] T& get() noexcept { return value_; }
    [[nodiscard]] const T& get() const noexcept { return value_; }
    void set(const T& value) { value_ = value; }
    void set(T&& value) { value_ = std::move(value); }
    [[nodiscard]] T& operator*() noexcept { return value_; }
    [[nodiscard]] const T& operator*() const noexcept { return value_; }
    [[nodiscard]] T* operator->() noexcept { return std::addressof(value_); }
    [[nodiscard]] const T* operator->() const noexcept { return std::addressof(value_); }

    /// Removes this element from its list and destroys it.
    void erase() noexcept requires is_owned { owner_.get_unchecked()->remove(this); }

    /// Makes this element the last of `other`. Throws std::invalid_argument when `other` takes its nodes from another
    /// allocator.
    void transfer_to_back(List& other) requires is_owned {
      move_between(owner_.get_unchecked(), this, other.ready(), nullptr);
    }

   private:
    friend class List;
    friend Order;
    friend container::Nodes;
    template <class... Arguments>
    explicit Element(Arguments&&... arguments) : value_(std::forward<Arguments>(arguments)...) {}

    [[no_unique_address]] std::conditional_t<is_owned, StateLink, NoOwner> owner_;
    T value_;
  };

  using value_type = T;
  using Iterator = container::NodeIterator<List, Order, Element, T>;
  using ConstIterator = container::NodeIterator<List, Order, const Element, const T>;
  using iterator = Iterator;
  using const_iterator = ConstIterator;

  /// What a BlockAllocator for this list's elements must fit, bytes.
  static constexpr std::size_t block_bytes() { return sizeof(Element); }
  static constexpr std::size_t block_alignment() { return alignof(Element); }

  constexpr List() noexcept = default;
  /// Takes its elements from `blocks` (DirectBlocks: a BlockAllocator&).
  explicit List(Blocks blocks) : state_(make_state(std::move(blocks))) {}
  // These three delegate, so that the destructor runs when an element's constructor throws.
  template <std::input_iterator I, std::sentinel_for<I> S>
  List(I first, S last, Blocks blocks = Blocks()) : List(std::move(blocks)) {
    for (; first != last; ++first) {
      emplace_back(*first);
    }
  }
  List(std::initializer_list<T> values, Blocks blocks = Blocks()) : List(std::move(blocks)) {
    for (const T& value : values) {
      push_back(value);
    }
  }
  List(const List& other) : List() {
    if (other.state_ != nullptr) {
      state_ = make_state(other.state_->blocks.for_copy());
      for (const Element* element = other.front(); element != nullptr; element = element->next()) {
        push_back(element->get());
      }
    }
  }
  List(List&& other) noexcept : state_(other.give_up()) {}
  List& operator=(const List& other) { return this == &other ? *this : (*this = List(other)); }
  List& operator=(List&& other) noexcept {
    List taken(std::move(other));
    swap(taken);
    return *this;
  }
  /// Keeps a shared allocator.
  List& operator=(std::initializer_list<T> values) {
    return *this = List(values, state_ == nullptr ? Blocks() : state_->blocks.for_copy());
  }
  ~List() {
    if (state_ != nullptr) {
      clear();
      std::destroy_at(state_);
      block::by_static_block_give(state_, state_stride);
    }
  }

  void swap(List& other) noexcept { std::swap(state_, other.state_); }
  friend void swap(List& a, List& b) noexcept { a.swap(b); }

  [[nodiscard]] std::size_t size() const noexcept { return state_ == nullptr ? 0 : state_->size; }
  [[nodiscard]] bool is_empty() const noexcept { return size() == 0; }

  /// The ends, nullptr when empty.
  [[nodiscard]] Element* front() noexcept { return state_ == nullptr ? nullptr : state_->order.first.get(); }
  [[nodiscard]] const Element* front() const noexcept { return const_cast<List*>(this)->front(); }
  [[nodiscard]] Element* back() noexcept { return state_ == nullptr ? nullptr : state_->order.last.get(); }
  [[nodiscard]] const Element* back() const noexcept { return const_cast<List*>(this)->back(); }

  Element* push_back(const T& value) { return emplace_at(nullptr, value); }
  Element* push_back(T&& value) { return emplace_at(nullptr, std::move(value)); }
  Element* push_front(const T& value) { return emplace_front(value); }
  Element* push_front(T&& value) { return emplace_front(std::move(value)); }
  template <class... Arguments>
  [[gnu::noinline]] Element* emplace_front(Arguments&&... arguments) {
    State* const state = ready();
    Element* const element = make_element(state, std::forward<Arguments>(arguments)...);
    state->link_before(element, state->order.first.get());  // the constructor may have changed what is in front
    return element;
  }
  template <class... Arguments>
  Element* emplace_back(Arguments&&... arguments) {
    return emplace_at(nullptr, std::forward<Arguments>(arguments)...);
  }

  /// Makes an element before another; with nullptr, at the end.
  template <class... Arguments>
  Element* emplace(Element* where, Arguments&&... arguments) {
    return emplace_before(where, std::forward<Arguments>(arguments)...);
  }
  /// Inserts before or after an element; with nullptr, at the end. The new element.
  Element* insert_before(Element* where, const T& value) { return emplace_before(where, value); }
  Element* insert_before(Element* where, T&& value) { return emplace_before(where, std::move(value)); }
  Element* insert_after(Element* where, const T& value) { return emplace_before(successor(where), value); }
  Element* insert_after(Element* where, T&& value) { return emplace_before(successor(where), std::move(value)); }

  /// Nothing happens when the list is empty.
  void pop_back() noexcept { erase(back()); }
  void pop_front() noexcept { erase(front()); }

  /// Removes and destroys an element of this list. False for nullptr, and where elements know their list, for an
  /// element of another one. O(1).
  template <container::NamesElement<Element, T> E>
  bool erase(E named) noexcept {
    Element* const element = named;
    if (element == nullptr) {
      return false;
    }
    if constexpr (is_owned) {
      if (element->owner_.get() != state_) {
        return false;
      }
    }
    state_->remove(element);
    return true;
  }
  /// Removes the element of an iterator, which is not the end. An iterator to the next one.
  template <class I>
  requires std::is_same_v<I, Iterator> || std::is_same_v<I, ConstIterator> Iterator erase(I at)
  noexcept {
    auto* const element = const_cast<Element*>(at.element());
    Element* const next = element->next();
    state_->remove(element);
    return {next, this};
  }
  /// Removes the first element equal to `value`; whether there was one. O(n).
  bool erase(const T& value) { return erase(find(value)); }

  /// The first element equal to `value`, nullptr if none. O(n).
  template <class U>
  [[nodiscard]] Element* find(const U& value) {
    for (Element* element = front(); element != nullptr; element = element->next()) {
      if (element->value_ == value) {
        return element;
      }
    }
    return nullptr;
  }
  template <class U>
  [[nodiscard]] const Element* find(const U& value) const {
    return const_cast<List*>(this)->find(value);
  }

  template <class U>
  [[nodiscard]] bool contains(const U& value) const {
    return find(value) != nullptr;
  }

  /// The value at a position. Throws std::out_of_range. O(n), from the nearer end.
  [[nodiscard]] T& get(std::size_t index) {
    if (index >= size()) {
      block::throw_out_of_range("blockyard::List: index out of range");
    }
    const std::size_t from_end = size() - 1 - index;
    Element* element = index <= from_end ? front() : back();
    for (std::size_t steps = std::min(index, from_end); steps != 0; --steps) {
      element = (index <= from_end ? element->next_ : element->previous_).get_unchecked();
    }
    return element->value_;
  }
  [[nodiscard]] const T& get(std::size_t index) const { return const_cast<List*>(this)->get(index); }
  [[nodiscard]] T& at(std::size_t index) { return get(index); }
  [[nodiscard]] const T& at(std::size_t index) const { return get(index); }
  [[nodiscard]] T& operator[](std::size_t index) { return get(index); }
  [[nodiscard]] const T& operator[](std::size_t index) const { return get(index); }

  /// Moves all elements of another list to before an element of this one; with nullptr, to the end. Their addresses
  /// stay. O(1); O(their number) where elements know their list. Throws std::invalid_argument, with nothing changed,
  /// when the lists take their elements from different allocators.
  void splice(Element* where, List& other) {
    if (this == &other || other.is_empty()) {
      return;
    }
    State* const target = ready();
    check_shared(other.state_, target);
    if constexpr (is_owned) {
      for (Element* element = other.front(); element != nullptr; element = element->next()) {
        element->owner_ = StateLink(target);
      }
    }
    target->order.splice_before(other.state_->order, where);
    target->size += std::exchange(other.state_->size, 0);
  }
  /// The same for one element of another list, or of this one. O(1).
  void splice(Element* where, List& other, Element* element) {
    if (where != element) {
      move_between(other.state_, element, ready(), where);
    }
  }

  /// Swaps the places of two elements of this list. Nothing happens with nullptr.
  void swap(Element* a, Element* b) noexcept {
    if (a == b || a == nullptr || b == nullptr) {
      return;
    }
    if (b->next() == a) {
      std::swap(a, b);
    }
    Element* const after_a = a->next();
    Element* const after_b = b->next();
    move_before(b, after_a);
    move_before(a, after_b);
  }
  void move_to_back(Element* element) noexcept { move_before(element, nullptr); }
  void move_to_front(Element* element) noexcept { move_before(element, front()); }
  /// Moves an element of this list to before another; with nullptr, to the end.
  void move_before(Element* element, Element* where) noexcept {
    if (element != where) {
      state_->unlink(element);
      state_->link_before(element, where);
    }
  }

  /// O(n).
  void reverse() noexcept {
    if (state_ == nullptr) {
      return;
    }
    for (Element* element = state_->order.first.get(); element != nullptr; element = element->prev()) {
      std::swap(element->next_, element->previous_);
    }
    std::swap(state_->order.first, state_->order.last);
  }

  /// Sorts stably; elements keep their addresses.
  void sort() {
    sort_by([](const T& a, const T& b) { return a < b; });
  }
  /// By a comparison class: C()(a, b) is whether a comes first.
  template <class C>
  void sort_custom() {
    sort_by(C());
  }
  template <class C>
  void sort_by(C&& less) {
    if (size() > 1) {
      state_->order.sort(size(), less);
    }
  }

  /// Destroys all elements. The list keeps its allocator. O(1) where T has no destructor and nodes are blocks, else
  /// O(n).
  [[gnu::noinline]] void clear() noexcept {
    if (!is_empty()) {
      state_->order.template clear<true>(state_->blocks, std::exchange(state_->size, 0));
    }
  }

  /// Gives unused pages of an allocator of the list's own back. O(its slabs).
  void shrink_to_fit() noexcept {
    if constexpr (Blocks::can_reset) {
      if (state_ != nullptr) {
        state_->blocks.trim();
      }
    }
  }

  /// Bytes of elements and state. O(1).
  [[nodiscard]] std::size_t memory_bytes() const noexcept {
    return state_ == nullptr ? 0 : size() * block::stride_of(sizeof(Element), alignof(Element)) + state_stride;
  }

  [[nodiscard]] Iterator begin() noexcept { return {front(), this}; }
  [[nodiscard]] Iterator end() noexcept { return {nullptr, this}; }
  [[nodiscard]] ConstIterator begin() const noexcept { return {front(), this}; }
  [[nodiscard]] ConstIterator end() const noexcept { return {nullptr, this}; }

  friend bool operator==(const List& a, const List& b) {
    return a.size() == b.size() && std::equal(a.begin(), a.end(), b.begin());
  }

  /// Whether the links agree both ways, for tests. O(n).
  [[nodiscard]] bool invariants_hold() const noexcept {
    if (state_ == nullptr) {
      return true;
    }
    if constexpr (is_owned) {
      for (const Element* element = front(); element != nullptr; element = element->next()) {
        if (element->owner_.get() != state_) {
          return false;
        }
      }
    }
    return state_->order.invariants_hold(state_->size);
  }

 private:
  template <class, class, class, class, class>
  friend class container::NodeIterator;
  Element* last_node() const noexcept { return const_cast<List*>(this)->back(); }

  static constexpr std::size_t state_stride = block::stride_of(sizeof(State), alignof(State));
  static State* make_state(Blocks&& blocks) {
    return ::new (block::by_static_block_take(state_stride)) State(std::move(blocks));
  }

  static void check_shared(const State* source, const State* target) {
    if (!source->blocks.shares_with(target->blocks)) {
      block::throw_invalid_argument("blockyard::List: elements can't move to a list with another allocator");
    }
  }
  static void move_between(State* source, Element* element, State* target, Element* where) {
    if (source != target) {
      check_shared(source, target);
    }
    source->unlink(element);
    target->link_before(element, where);
    if constexpr (is_owned) {
      element->owner_ = StateLink(target);
    }
  }

  static Element* successor(Element* where) noexcept { return where == nullptr ? nullptr : where->next(); }

  State* ready() {
    if (state_ == nullptr) [[unlikely]] {
      begin_list();
    }
    return state_;
  }
  [[gnu::noinline]] void begin_list() { state_ = make_state(Blocks()); }

  // Inline where elements are appended, which is how lists are filled; a call for any other place.
  template <class... Arguments>
  [[gnu::always_inline]] Element* emplace_at(Element* where, Arguments&&... arguments) {
    State* const state = ready();
    Element* const element = make_element(state, std::forward<Arguments>(arguments)...);
    state->link_before(element, where);
    return element;
  }
  template <class... Arguments>
  [[gnu::always_inline]] static Element* make_element(State* state, Arguments&&... arguments) {
    Element* const element = container::Nodes::make<Element>(state->blocks, std::forward<Arguments>(arguments)...);
    if constexpr (is_owned) {
      element->owner_ = StateLink(state);
    }
    return element;
  }
  template <class... Arguments>
  [[gnu::noinline]] Element* emplace_before(Element* where, Arguments&&... arguments) {
    return emplace_at(where, std::forward<Arguments>(arguments)...);
  }

  // The state, for another list. Over a shared allocator this one gets a new state, unless memory is exhausted.
  State* give_up() noexcept {
    State* const given = std::exchange(state_, nullptr);
    if constexpr (Blocks::can_reset) {
      if (given != nullptr && !given->blocks.is_own() && given->blocks.allocator() != nullptr) {
        stay_with(given->blocks);
      }
    }
    return given;
  }
  [[gnu::noinline]] void stay_with(const Blocks& shared) noexcept {
    // Without memory it is like a new list.
    if (void* const room = block::by_static_block_allocate(state_stride); room != nullptr) {
      state_ = ::new (room) State(shared.for_copy());
    }
  }

  State* state_ = nullptr;
};

static_assert(sizeof(List<int>) <= 8);

}  // namespace blockyard

#endif
