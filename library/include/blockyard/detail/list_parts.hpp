/// What a List is made of: its elements, its state, its iterators, and how it sorts. Inside of list.hpp.
#ifndef BLOCKYARD_DETAIL_LIST_PARTS_HPP
#define BLOCKYARD_DETAIL_LIST_PARTS_HPP

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <memory>
#include <type_traits>
#include <utility>
#include <vector>

#include "blockyard/list.hpp"

namespace blockyard {

template <class T, class A, class Ownership>
class List<T, A, Ownership>::Element {
 public:
  /// The neighbours, nullptr at the ends.
  [[nodiscard]] Element* next() noexcept { return next_.get(); }
  [[nodiscard]] const Element* next() const noexcept { return next_.get(); }
  [[nodiscard]] Element* prev() noexcept { return previous_.get(); }
  [[nodiscard]] const Element* prev() const noexcept { return previous_.get(); }

  [[nodiscard]] T& get() noexcept { return value_; }
  [[nodiscard]] const T& get() const noexcept { return value_; }
  void set(const T& value) { value_ = value; }
  void set(T&& value) { value_ = std::move(value); }
  [[nodiscard]] T& operator*() noexcept { return value_; }
  [[nodiscard]] const T& operator*() const noexcept { return value_; }
  [[nodiscard]] T* operator->() noexcept { return &value_; }
  [[nodiscard]] const T* operator->() const noexcept { return &value_; }

  /// Removes this element from its list and destroys it.
  void erase() noexcept requires is_owned { owner_.get_unchecked()->remove(this); }

  /// Makes this element the last of `other`. Throws std::invalid_argument when `other` takes its nodes from another
  /// allocator.
  void transfer_to_back(List& other) requires is_owned {
    State* const target = other.ready();
    State* const source = owner_.get_unchecked();
    if (!source->blocks.shares_with(target->blocks)) {
      block::throw_invalid_argument("blockyard::List: an element can't move to a list with another allocator");
    }
    source->unlink(this);
    target->link_before(this, nullptr);
    owner_ = StateLink(target);
  }

 private:
  friend class List;
  template <class... Arguments>
  explicit Element(Arguments&&... arguments)
      : next_(Unset()), previous_(Unset()), value_(std::forward<Arguments>(arguments)...) {}

  Link next_;  ///< first: a list that is cleared becomes a chain of free blocks as it stands
  Link previous_;
  [[no_unique_address]] std::conditional_t<is_owned, StateLink, NoOwner> owner_;
  T value_;
};

/// What a list has beyond its pointer, from the first element on.
template <class T, class A, class Ownership>
struct List<T, A, Ownership>::State {
  explicit State(Blocks&& from) noexcept : blocks(std::move(from)) {}

  void link_before(Element* element, Element* where) noexcept {
    const Link link(element);
    const Link previous = where != nullptr ? where->previous_ : last;
    element->next_ = Link(where);
    element->previous_ = previous;
    (previous ? previous.get_unchecked()->next_ : first) = link;
    (where != nullptr ? where->previous_ : last) = link;
    ++size;
  }
  void unlink(Element* element) noexcept {
    (element->previous_ ? element->previous_.get_unchecked()->next_ : first) = element->next_;
    (element->next_ ? element->next_.get_unchecked()->previous_ : last) = element->previous_;
    --size;
  }
  [[gnu::noinline]] void remove(Element* element) noexcept {
    unlink(element);
    std::destroy_at(element);
    blocks.deallocate(element);
  }

  Link first;
  Link last;
  std::size_t size = 0;
  [[no_unique_address]] Blocks blocks;
};

template <class T, class A, class Ownership>
template <class E, class V>
class List<T, A, Ownership>::BasicIterator {
 public:
  using iterator_category = std::bidirectional_iterator_tag;
  using value_type = T;
  using difference_type = std::ptrdiff_t;
  using pointer = V*;
  using reference = V&;

  constexpr BasicIterator() = default;
  BasicIterator(E* element, const List* list) noexcept : element_(element), list_(list) {}
  /// An iterator converts to a const one.
  operator BasicIterator<const Element, const T>() const noexcept { return {element_, list_}; }  // NOLINT

  [[nodiscard]] V& operator*() const noexcept { return element_->get(); }
  [[nodiscard]] V* operator->() const noexcept { return &element_->get(); }
  /// The element, nullptr at the end.
  [[nodiscard]] E* element() const noexcept { return element_; }
  [[nodiscard]] explicit operator bool() const noexcept { return element_ != nullptr; }

  BasicIterator& operator++() noexcept {
    element_ = following(element_);
    return *this;
  }
  BasicIterator operator++(int) noexcept {
    BasicIterator old = *this;
    ++*this;
    return old;
  }
  /// From the end: to the last element.
  BasicIterator& operator--() noexcept {
    element_ = element_ != nullptr ? element_->prev() : const_cast<List*>(list_)->back();
    return *this;
  }
  BasicIterator operator--(int) noexcept {
    BasicIterator old = *this;
    --*this;
    return old;
  }
  friend bool operator==(const BasicIterator& a, const BasicIterator& b) noexcept { return a.element_ == b.element_; }

 private:
  friend class List;
  // The guess must not come from the load, or the processor would wait for it all the same: what is compared is
  // hidden from the compiler, which would else take the one for the other. Two pages ahead is where the processor's
  // own prefetching, which stops at each page's end, has not been: of 0 to 8 KiB that was the fastest.
  static E* following(E* element) noexcept {
    E* const guess = element + 1;
    const E* hidden = guess;
    asm("" : "+r"(hidden));
    __builtin_prefetch(reinterpret_cast<const char*>(element) + 8192);
    if (element->next_.get_unchecked() == hidden) [[likely]] {
      return guess;
    }
    return element->next_.get();
  }

  E* element_ = nullptr;
  const List* list_ = nullptr;
};

/// Ends a half-made list when its construction throws.
template <class T, class A, class Ownership>
class List<T, A, Ownership>::Guard {
 public:
  explicit Guard(List* list) : list_(list) {}
  ~Guard() {
    if (list_ != nullptr) {
      list_->end_list();
    }
  }
  Guard(const Guard&) = delete;
  Guard& operator=(const Guard&) = delete;
  void release() { list_ = nullptr; }

 private:
  List* list_;
};

template <class T, class A, class Ownership>
template <class C>
void List<T, A, Ownership>::sort_by(C&& less) {
  if (size() < 2) {
    return;
  }
  std::vector<Element*> order;
  order.reserve(size());
  for (Element* element = state_->first.get(); element != nullptr; element = element->next()) {
    order.push_back(element);
  }
  std::stable_sort(order.begin(), order.end(),
                   [&](const Element* a, const Element* b) { return less(a->value_, b->value_); });
  Link previous;
  state_->first = Link(order.front());
  for (Element* const element : order) {
    const Link link(element);
    element->previous_ = previous;
    if (previous) {
      previous.get_unchecked()->next_ = link;
    }
    previous = link;
  }
  previous.get_unchecked()->next_ = Link();
  state_->last = previous;
}

}  // namespace blockyard

#endif
