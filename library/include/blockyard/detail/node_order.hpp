/// NodeOrder: a doubly linked list through nodes. It is the whole of a List and the insertion order of a HashMap.
/// Included by list.hpp and hash_map.hpp.
#ifndef BLOCKYARD_DETAIL_NODE_ORDER_HPP
#define BLOCKYARD_DETAIL_NODE_ORDER_HPP

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "blockyard/detail/link.hpp"

namespace blockyard::container {

/// What a node of an order begins with. The next link comes first, so that an order is also a chain of blocks that can
/// be freed at once. Not initialised: linking a node writes both.
template <class Link>
struct OrderLinks {
  Link next_{Unset()};
  Link previous_{Unset()};
};

/// `Node` derives from OrderLinks<Link>.
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

  /// Takes a node out. O(1).
  void unlink(Node* node) noexcept {
    link_at(node->previous_, offsetof(OrderLinks<Link>, next_), &first) = node->next_;
    link_at(node->next_, offsetof(OrderLinks<Link>, previous_), &last) = node->previous_;
  }

  /// The next node, found sooner if it is next in memory, as it mostly is: the processor goes on with the guess while
  /// it waits for the link. `hidden` hides from the compiler that both values are equal, or it would use the link. The
  /// prefetch reaches beyond the end of the page, where the processor's own prefetching stops.
  template <class N>
  [[nodiscard, gnu::always_inline]] static N* following(N* node) noexcept {
    N* const guess = node + 1;
    const N* hidden = guess;
    asm("" : "+r"(hidden));
    __builtin_prefetch(reinterpret_cast<const char*>(node) + 8192);
    if (node->next_.get_unchecked() == hidden) [[likely]] {
      return guess;
    }
    return node->next_.get();
  }

  // A link of the node that `to` names, or where it names none, `end`. Without a jump: in a short order nobody can
  // predict whether a node is at an end.
  static Link& link_at(Link to, std::size_t offset, Link* end) noexcept {
    OrderLinks<Link>* const links = to.get_unchecked();
    const std::uintptr_t mask = std::uintptr_t{0} - static_cast<std::uintptr_t>(static_cast<bool>(to));
    return *reinterpret_cast<Link*>(((reinterpret_cast<std::uintptr_t>(links) + offset) & mask) |
                                    (reinterpret_cast<std::uintptr_t>(end) & ~mask));
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
    std::stable_sort(nodes.begin(), nodes.end(), less);
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

}  // namespace blockyard::container

#endif
