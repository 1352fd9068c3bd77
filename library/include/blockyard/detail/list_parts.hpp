/// List's elements and state. Included by list.hpp, at its end.
#ifndef BLOCKYARD_DETAIL_LIST_PARTS_HPP
#define BLOCKYARD_DETAIL_LIST_PARTS_HPP

#include <cstddef>
#include <memory>
#include <type_traits>
#include <utility>

#include "blockyard/list.hpp"

namespace blockyard {

template <class T, class A, class Ownership>
class List<T, A, Ownership>::Element : container::OrderLinks<Link> {
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
  friend Order;
  template <class... Arguments>
  explicit Element(Arguments&&... arguments) : value_(std::forward<Arguments>(arguments)...) {}

  [[no_unique_address]] std::conditional_t<is_owned, StateLink, NoOwner> owner_;
  T value_;
};

/// What a list has besides its pointer, from the first element on.
template <class T, class A, class Ownership>
struct List<T, A, Ownership>::State {
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
    std::destroy_at(element);
    blocks.deallocate(element);
  }

  Order order;
  std::size_t size = 0;
  [[no_unique_address]] Blocks blocks;
};

}  // namespace blockyard

#endif
