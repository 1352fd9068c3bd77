/// What containers do with nodes: make and end them, link them in an order, and iterate. Included by their headers.
#ifndef BLOCKYARD_DETAIL_NODES_HPP
#define BLOCKYARD_DETAIL_NODES_HPP

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <memory>
#include <new>
#include <type_traits>
#include <utility>
#include <vector>

#include "blockyard/detail/link.hpp"
#include "blockyard/detail/on_throw.hpp"

namespace blockyard::container {

/// Nodes in the blocks of a container's allocator, its `Blocks` (node_blocks.hpp).
struct Nodes {
  /// Throws std::bad_alloc, and what the constructor throws; nothing is allocated then.
  template <class Node, class Blocks, class... Arguments>
  [[gnu::always_inline]] static Node* make(Blocks& blocks, Arguments&&... arguments) {
    void* const room = blocks.allocate();
    block::OnThrow on_throw([&] { give_back(blocks, room); });
    Node* const made = ::new (room) Node(std::forward<Arguments>(arguments)...);
    on_throw.done();
    return made;
  }
  template <class Node, class Blocks>
  static void end(Blocks& blocks, Node* node) noexcept {
    std::destroy_at(node);
    blocks.deallocate(node);
  }

 private:
  // Out of line: what is thrown past needs no speed.
  template <class Blocks>
  [[gnu::noinline]] static void give_back(Blocks& blocks, void* block) noexcept {
    blocks.deallocate(block);
  }
};

/// What a node of an order begins with. The next link comes first, so that an order is also a chain of blocks that can
/// be freed at once. Not initialised: linking a node writes both.
template <class Link>
struct OrderLinks {
  Link next_{Unset()};
  Link previous_{Unset()};
};

/// Whether erase() takes an `E` for an element, not for a key or value. A literal 0, which converts to any pointer, is
/// a number; nullptr is a value where values are pointers of any kind.
template <class E, class Element, class Value>
concept NamesElement = std::convertible_to<E, Element*> &&
    !(std::is_null_pointer_v<E> && std::is_scalar_v<Value> && std::convertible_to<E, Value>);

/// Whether nodes need not be freed: their memory goes by itself.
template <class Blocks>
inline constexpr bool forgets_nodes = requires {
  typename Blocks::ForgetsNodes;
};

struct NoHint {};

/// A doubly linked list through nodes: the whole of a List and the insertion order of a HashMap. `Node` derives from
/// OrderLinks<Link>, and `*node` is what it holds.
template <class Node, class Link>
struct NodeOrder {
  Link first;
  Link last;

  /// Enters a node before another, or with nullptr at the end. O(1).
  void link_before(Node* node, Node* where) noexcept {
    const Link link(node);
    const Link previous = where != nullptr ? where->previous_ : last;
    node->next_ = Link(where);
    node->previous_ = previous;
    (previous ? previous.get_unchecked()->next_ : first) = link;
    (where != nullptr ? where->previous_ : last) = link;
  }

  /// Enters all nodes of another order before a node, or with nullptr at the end; the other order is empty then. O(1).
  void splice_before(NodeOrder& others, Node* where) noexcept {
    if (!others.first) {
      return;
    }
    const Link previous = where != nullptr ? where->previous_ : last;
    others.first.get_unchecked()->previous_ = previous;
    others.last.get_unchecked()->next_ = Link(where);
    (previous ? previous.get_unchecked()->next_ : first) = others.first;
    (where != nullptr ? where->previous_ : last) = others.last;
    others = {};
  }

  /// Takes a node out. O(1). Reads both links first: as far as the compiler knows, a write may change them.
  void unlink(Node* node) noexcept {
    const Link next = node->next_;
    const Link previous = node->previous_;
    link_at(previous, offsetof(OrderLinks<Link>, next_), &first) = next;
    link_at(next, offsetof(OrderLinks<Link>, previous_), &last) = previous;
  }

  /// The next node, found sooner if it is next in memory, as it mostly is: the processor goes on with the guess while
  /// it waits for the link. `hidden` hides from the compiler that both values are equal, or it would use the link. The
  /// prefetch reaches beyond the end of the page, where the processor's own prefetching stops.
  template <class N>
  [[nodiscard, gnu::always_inline]] static N* next_of(N* node, NoHint = {}) noexcept {
    N* const guess = node + 1;
    const N* hidden = guess;
    asm("" : "+r"(hidden));
    __builtin_prefetch(reinterpret_cast<const char*>(node) + 8192);
    if (node->next_.get_unchecked() == hidden) [[likely]] {
      return guess;
    }
    return node->next_.get();
  }
  template <class N>
  [[nodiscard]] static N* previous_of(N* node, NoHint) noexcept {
    return node->previous_.get();
  }
  template <class N>
  [[nodiscard]] static auto& value_of(N* node) noexcept {
    return **node;
  }

  // A link of the node that `to` names, or where it names none, `end`. Without a jump: in a short order nobody can
  // predict whether a node is at an end.
  static Link& link_at(Link to, std::size_t offset, Link* end) noexcept {
    OrderLinks<Link>* const links = to.get_unchecked();
    const std::uintptr_t mask = std::uintptr_t{0} - static_cast<std::uintptr_t>(static_cast<bool>(to));
    return *reinterpret_cast<Link*>(((reinterpret_cast<std::uintptr_t>(links) + offset) & mask) |
                                    (reinterpret_cast<std::uintptr_t>(end) & ~mask));
  }

  /// Ends `count` nodes, which are all. An allocator of the container's own is reset; else, with `chains`, many nodes
  /// are freed at once.
  template <bool chains, class Blocks>
  void clear(Blocks& blocks, std::size_t count) noexcept {
    using Value = std::remove_reference_t<decltype(**std::declval<Node*>())>;
    // A short chain is freed node by node, so that empty slabs are noticed; the limit keeps that O(1).
    constexpr std::size_t short_chain = 64;
    const NodeOrder all = std::exchange(*this, {});
    bool is_own = false;
    if constexpr (Blocks::can_reset) {
      is_own = blocks.is_own();
    }
    const bool frees_each = !is_own && !forgets_nodes<Blocks> && !(chains && Blocks::can_chain && count > short_chain);
    if (frees_each || !std::is_trivially_destructible_v<Value>) {
      for (Node* node = all.first.get(); node != nullptr;) {
        Node* const next = next_of(node);
        std::destroy_at(std::addressof(**node));  // not the links, which a chain needs
        if (frees_each) {
          blocks.deallocate(node);
        }
        node = next;
      }
    }
    if constexpr (Blocks::can_reset) {
      if (is_own) {
        blocks.reset();
      }
    }
    if constexpr (chains && Blocks::can_chain) {
      if (!is_own && !frees_each) {
        blocks.deallocate_chain(all.first.get(), all.last.get(), count);
      }
    }
  }

  /// Sorts `count` nodes, which are all, stably: `less(a, b)` is whether node a comes first. O(n log n). When memory is
  /// exhausted or `less` throws, nothing has changed.
  template <class Less>
  void sort(std::size_t count, Less&& less) {
    std::vector<Node*> nodes;
    nodes.reserve(count);
    for (Node* node = first.get(); node != nullptr; node = node->next_.get()) {
      nodes.push_back(node);
    }
    std::stable_sort(nodes.begin(), nodes.end(),
                     [&](Node* a, Node* b) { return less(std::as_const(**a), std::as_const(**b)); });
    first = last = Link();
    for (Node* const node : nodes) {
      link_before(node, nullptr);
    }
  }

  /// Whether the links of `count` nodes agree both ways. O(n).
  [[nodiscard]] bool invariants_hold(std::size_t count) const noexcept {
    std::size_t seen = 0;
    const Node* previous = nullptr;
    for (const Node* node = first.get(); node != nullptr; node = node->next_.get()) {
      if (node->previous_.get() != previous || ++seen > count) {
        return false;
      }
      previous = node;
    }
    return previous == last.get() && seen == count;
  }
};

/// Bidirectional. `Steps` has static functions next_of(node, hint) and previous_of(node, hint), which return a
/// neighbour or nullptr, and value_of(node); `Container` has last_node(). `Hint` is kept from one step to the next.
template <class Container, class Steps, class Node, class Value, class Hint = NoHint>
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
  operator NodeIterator<Container, Steps, const Node, const Value, Hint>() const noexcept {  // NOLINT
    return {node_, container_, hint_};
  }

  [[nodiscard]] Value& operator*() const noexcept { return Steps::value_of(node_); }
  [[nodiscard]] Value* operator->() const noexcept { return std::addressof(Steps::value_of(node_)); }
  /// The element, nullptr at the end.
  [[nodiscard]] Node* element() const noexcept { return node_; }
  /// Whether it is not at the end.
  [[nodiscard]] explicit operator bool() const noexcept { return node_ != nullptr; }

  /// From the end: nothing.
  NodeIterator& operator++() noexcept {
    if (node_ != nullptr) {
      node_ = Steps::next_of(node_, hint_);
    }
    return *this;
  }
  NodeIterator operator++(int) noexcept {
    NodeIterator old = *this;
    ++*this;
    return old;
  }
  /// From the end: to the last element.
  NodeIterator& operator--() noexcept {
    node_ = node_ != nullptr ? Steps::previous_of(node_, hint_) : container_->last_node();
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
