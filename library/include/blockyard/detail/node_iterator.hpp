/// NodeIterator: the iterators of List, HashMap, RBMap and RBSet. Included by their headers.
#ifndef BLOCKYARD_DETAIL_NODE_ITERATOR_HPP
#define BLOCKYARD_DETAIL_NODE_ITERATOR_HPP

#include <cstddef>
#include <iterator>
#include <type_traits>

namespace blockyard::container {

struct NoHint {};

/// Bidirectional. `Container` has static functions next_of(node, hint) and previous_of(node, hint), which return a
/// neighbour or nullptr, and value_of(node); and last_node(). `Hint` is what a step remembers for the next one.
template <class Container, class Node, class Value, class Hint = NoHint>
class NodeIterator {
 public:
  using iterator_category = std::bidirectional_iterator_tag;
  using value_type = std::remove_const_t<Value>;
  using difference_type = std::ptrdiff_t;
  using pointer = Value*;
  using reference = Value&;

  constexpr NodeIterator() = default;
  NodeIterator(Node* node, const Container* container, Hint hint = Hint()) noexcept
      : node_(node), container_(container), hint_(hint) {}
  /// An iterator converts to a const one.
  operator NodeIterator<Container, const Node, const Value, Hint>() const noexcept {  // NOLINT
    return {node_, container_, hint_};
  }

  [[nodiscard]] Value& operator*() const noexcept { return Container::value_of(node_); }
  [[nodiscard]] Value* operator->() const noexcept { return &Container::value_of(node_); }
  /// The element, nullptr at the end.
  [[nodiscard]] Node* element() const noexcept { return node_; }
  /// Whether it is not at the end.
  [[nodiscard]] explicit operator bool() const noexcept { return node_ != nullptr; }

  NodeIterator& operator++() noexcept {
    node_ = Container::next_of(node_, hint_);
    return *this;
  }
  NodeIterator operator++(int) noexcept {
    NodeIterator old = *this;
    ++*this;
    return old;
  }
  /// From the end: to the last element.
  NodeIterator& operator--() noexcept {
    node_ = node_ != nullptr ? Container::previous_of(node_, hint_) : container_->last_node();
    return *this;
  }
  NodeIterator operator--(int) noexcept {
    NodeIterator old = *this;
    --*this;
    return old;
  }
  friend bool operator==(const NodeIterator& a, const NodeIterator& b) noexcept { return a.node_ == b.node_; }

 private:
  Node* node_ = nullptr;
  const Container* container_ = nullptr;
  [[no_unique_address]] Hint hint_{};
};

}  // namespace blockyard::container

#endif
