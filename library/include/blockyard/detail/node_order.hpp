/// The order of HashMap's nodes: a doubly linked list through them. Inside of hash_map.hpp.
///
/// LinkedOrder has two links a node. PackedOrder keeps both neighbours in the one word that alignment leaves unused
/// before a small key (HashMap<int, std::string>: 40 bytes a node in place of 48), as distances of up to 128 KiB:
/// neighbours in the order are mostly neighbours in memory. Where they are not (a page's end, a map that was sorted),
/// both have a record of 16 bytes with links of full reach. So that erasing need never allocate one, an erased node
/// whose neighbours are too far from one another stays as a *bridge* between them until they are not; of any two
/// bridges in a row one could not be left out, so there is at most about one for each 64 KiB between two entries.
#ifndef BLOCKYARD_DETAIL_NODE_ORDER_HPP
#define BLOCKYARD_DETAIL_NODE_ORDER_HPP

#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <utility>
#include <vector>

#include "blockyard/detail/link.hpp"
#include "blockyard/hash.hpp"
#include "blockyard/static_block_allocator.hpp"

namespace blockyard::container {

/// What `next(node)` returns, found sooner where that lies next in memory, as it mostly does: the guess must not wait
/// for the link, so what is compared is hidden from the compiler, which would else take the one for the other.
/// `is_next(node, guess)` is whether the guess is right.
template <class Node, class IsNext, class Next>
[[nodiscard, gnu::always_inline]] inline Node* guessed_next(Node* node, IsNext&& is_next, Next&& next) noexcept {
  Node* const guess = node + 1;
  const Node* hidden = guess;
  asm("" : "+r"(hidden));
  // Two pages ahead is where the processor's own prefetching, which stops at each page's end, has not been.
  __builtin_prefetch(reinterpret_cast<const char*>(node) + 8192);
  if (is_next(node, hidden)) [[likely]] {
    return guess;
  }
  return next(node);
}

/// Nodes have members `next` and `previous`, links to nodes. `Ends` has `first` and `last`, likewise.
template <class Node>
struct LinkedOrder {
  [[nodiscard]] static Node* next(const Node* node) noexcept { return node->next.get(); }
  [[nodiscard]] static Node* previous(const Node* node) noexcept { return node->previous.get(); }
  /// Whether `guess` is what next() returns. Not null.
  [[nodiscard]] static bool is_next(const Node* node, const Node* guess) noexcept {
    return node->next.get_unchecked() == guess;
  }

  template <class Ends>
  static void link(Ends& ends, Node* node, bool front) noexcept {
    const auto link = decltype(ends.first)(node);
    if (front) {
      node->previous = {};
      node->next = ends.first;
      (ends.first ? ends.first.get_unchecked()->previous : ends.last) = link;
      ends.first = link;
    } else {
      node->next = {};
      node->previous = ends.last;
      (ends.last ? ends.last.get_unchecked()->next : ends.first) = link;
      ends.last = link;
    }
  }

  /// Takes a node out of the order, destroys its entry and frees its block.
  template <class Ends, class Blocks>
  static void erase(Ends& ends, Node* node, Blocks& blocks) noexcept {
    (node->previous ? node->previous.get_unchecked()->next : ends.first) = node->next;
    (node->next ? node->next.get_unchecked()->previous : ends.last) = node->previous;
    std::destroy_at(node);
    blocks.deallocate(node);
  }

  /// Destroys all entries, and frees the blocks too if told so.
  template <class Ends, class Blocks>
  static void destroy(const Ends& ends, Blocks& blocks, bool frees) noexcept {
    for (Node* node = ends.first.get(); node != nullptr;) {
      Node* const following = next(node);
      std::destroy_at(node);
      if (frees) {
        blocks.deallocate(node);
      }
      node = following;
    }
  }

  /// Gives the nodes the order of `nodes`, which are all of them.
  template <class Ends, class Blocks>
  static void arrange(Ends& ends, const std::vector<Node*>& nodes, Blocks&) noexcept {
    ends = Ends();
    for (Node* const node : nodes) {
      link(ends, node, false);
    }
  }

  template <class Ends>
  [[nodiscard]] static bool invariants_hold(const Ends& ends, std::size_t entries) noexcept {
    std::size_t count = 0;
    const Node* before = nullptr;
    for (const Node* node = ends.first.get(); node != nullptr && count <= entries; node = next(node), ++count) {
      if (previous(node) != before) {
        return false;
      }
      before = node;
    }
    return before == ends.last.get() && count == entries;
  }
};

/// Links of full reach for a node that has a neighbour beyond that of its word.
struct alignas(16) FarNeighbours {
  NearLink<void> next;
  NearLink<void> previous;
};

/// Nodes have a member `entry`, a KeyValue with an OrderWord.
///
/// The word: bit 0 is set where it is the place of a FarNeighbours in 31 bits; else bit 1 is set in bridges, and two
/// distances of 15 bits with sign follow, to the next node and to the previous one, in units of 8 bytes, 0 for none.
///
/// A node has a FarNeighbours exactly when one of its neighbours is beyond a word's reach; it is no bridge then.
template <class Node>
class PackedOrder {
 public:
  [[nodiscard]] static Node* next(const Node* node) noexcept {
    Node* at = raw_next(node);
    while (at != nullptr && is_bridge(at)) [[unlikely]] {
        at = raw_next(at);
      }
    return at;
  }
  [[nodiscard]] static Node* previous(const Node* node) noexcept {
    Node* at = raw_previous(node);
    while (at != nullptr && is_bridge(at)) [[unlikely]] {
        at = raw_previous(at);
      }
    return at;
  }
  [[nodiscard]] static bool is_next(const Node* node, const Node* guess) noexcept {
    return is_raw_next(node, guess) && !is_bridge(guess);
  }

  /// Throws std::bad_alloc, and nothing is changed, when a FarNeighbours can't be had.
  template <class Ends>
  [[gnu::always_inline]] static void link(Ends& ends, Node* node, bool front) {
    // Filling cuts one node after the other.
    Node* const last = node - 1;
    if (!front && ends.last == decltype(ends.last)(last) && !is_far_node(last)) [[likely]] {
      constexpr std::uint32_t step = sizeof(Node) >> unit_shift;
      word_of(last) |= step << next_shift;
      word_of(node) = (0 - step) << previous_shift;
      ends.last = decltype(ends.last)(node);
    } else {
      link_apart(ends, node, front);
    }
  }

  template <class Ends, class Blocks>
  static void erase(Ends& ends, Node* node, Blocks& blocks) noexcept {
    Node* const before = previous(node);
    Node* const after = next(node);
    if (!is_far_node(node) && before != nullptr && after != nullptr && !reaches(before, after)) {
      become_bridge(node);
      if (!leave_out(node, blocks)) {
        while (leave_out(raw_previous(node), blocks)) {
        }
        while (leave_out(raw_next(node), blocks)) {
        }
      }
      return;
    }
    // Also the bridges beside it.
    for (Node* at = before == nullptr ? ends.first.get() : raw_next(before); at != node;) {
      Node* const following = raw_next(at);
      blocks.deallocate(at);
      at = following;
    }
    for (Node* at = raw_next(node); at != after;) {
      Node* const following = raw_next(at);
      blocks.deallocate(at);
      at = following;
    }
    FarNeighbours* record = is_far_node(node) ? far_of(node) : nullptr;
    std::destroy_at(node);
    blocks.deallocate(node);
    if (before == nullptr || after == nullptr) {
      before != nullptr ? set_next(before, nullptr) : static_cast<void>(ends.first = decltype(ends.first)(after));
      after != nullptr ? set_previous(after, nullptr) : static_cast<void>(ends.last = decltype(ends.last)(before));
    } else {
      if (!reaches(before, after)) {
        // One of them had the erased node out of reach, so at most one lacks a record.
        for (Node* const at : {before, after}) {
          if (!is_far_node(at)) {
            widen(at, std::exchange(record, nullptr));
          }
        }
      }
      connect(before, after);
    }
    if (record != nullptr) {
      Records::destroy(record);
    }
  }

  template <class Ends, class Blocks>
  static void destroy(const Ends& ends, Blocks& blocks, bool frees) noexcept {
    for (Node* node = ends.first.get(); node != nullptr;) {
      Node* const following = guessed_next(node, is_raw_next, raw_next);
      if (!is_bridge(node)) {
        if (is_far_node(node)) {
          Records::destroy(far_of(node));
        }
        std::destroy_at(node);
      }
      if (frees) {
        blocks.deallocate(node);
      }
      node = following;
    }
  }

  /// As LinkedOrder; throws std::bad_alloc, and nothing is changed, when a FarNeighbours can't be had.
  template <class Ends, class Blocks>
  static void arrange(Ends& ends, const std::vector<Node*>& nodes, Blocks& blocks);

  template <class Ends>
  [[nodiscard]] static bool invariants_hold(const Ends& ends, std::size_t entries) noexcept;

 private:
  using Records = TypedStaticBlockAllocator<FarNeighbours>;
  static constexpr std::uint32_t is_far = 1;
  static constexpr std::uint32_t bridge = 2;
  static constexpr unsigned next_shift = 2;
  static constexpr unsigned previous_shift = 17;
  static constexpr unsigned unit_shift = 3;
  static constexpr unsigned far_shift = 4;
  static constexpr std::ptrdiff_t reach = ((std::ptrdiff_t{1} << 14) - 1) << unit_shift;

  static std::uint32_t& word_of(const Node* node) noexcept {
    return static_cast<OrderWord&>(const_cast<Node*>(node)->entry).word_;
  }
  static std::ptrdiff_t distance(const Node* from, const Node* to) noexcept {
    return reinterpret_cast<const std::byte*>(to) - reinterpret_cast<const std::byte*>(from);
  }
  static bool reaches(const Node* from, const Node* to) noexcept {
    const std::ptrdiff_t bytes = distance(from, to);
    return bytes <= reach && bytes >= -reach;
  }
  // Arithmetic shifts of a signed word: the sign of each distance comes along.
  static std::ptrdiff_t next_distance(std::uint32_t word) noexcept {
    return std::ptrdiff_t{static_cast<std::int32_t>(word << 15) >> 17} * (1 << unit_shift);
  }
  static std::ptrdiff_t previous_distance(std::uint32_t word) noexcept {
    return std::ptrdiff_t{static_cast<std::int32_t>(word) >> 17} * (1 << unit_shift);
  }
  static bool is_far_node(const Node* node) noexcept { return (word_of(node) & is_far) != 0; }
  static bool is_bridge(const Node* node) noexcept { return (word_of(node) & (is_far | bridge)) == bridge; }
  static FarNeighbours* far_of(const Node* node) noexcept {
    return static_cast<FarNeighbours*>(block::near_target(word_of(node) >> 1, far_shift));
  }
  static Node* at_distance(const Node* node, std::ptrdiff_t bytes) noexcept {
    return bytes == 0 ? nullptr
                      : reinterpret_cast<Node*>(reinterpret_cast<std::byte*>(const_cast<Node*>(node)) + bytes);
  }
  static Node* raw_next(const Node* node) noexcept {
    return is_far_node(node) ? static_cast<Node*>(far_of(node)->next.get())
                             : at_distance(node, next_distance(word_of(node)));
  }
  static bool is_raw_next(const Node* node, const Node* guess) noexcept {
    const std::uint32_t word = word_of(node);
    return (word & is_far) == 0 &&
           reinterpret_cast<const std::byte*>(node) + next_distance(word) == reinterpret_cast<const std::byte*>(guess);
  }
  static Node* raw_previous(const Node* node) noexcept {
    return is_far_node(node) ? static_cast<Node*>(far_of(node)->previous.get())
                             : at_distance(node, previous_distance(word_of(node)));
  }
  static std::uint32_t units(const Node* from, const Node* to) noexcept {
    return static_cast<std::uint32_t>(distance(from, to) >> unit_shift) & 0x7fff;
  }
  static std::uint32_t packed(const Node* node, const Node* after, const Node* before) noexcept {
    return (after == nullptr ? 0 : units(node, after) << next_shift) |
           (before == nullptr ? 0 : units(node, before) << previous_shift);
  }

  // Sets one neighbour, which is within the word's reach if the node has no record; a record that is not needed any
  // more goes.
  static void set_next(Node* node, Node* after) noexcept { set(node, after, raw_previous(node)); }
  static void set_previous(Node* node, Node* before) noexcept { set(node, raw_next(node), before); }
  static void set(Node* node, Node* after, Node* before) noexcept {
    std::uint32_t& word = word_of(node);
    if ((word & is_far) == 0) [[likely]] {
      word = packed(node, after, before) | (word & bridge);
    } else if ((after == nullptr || reaches(node, after)) && (before == nullptr || reaches(node, before))) {
      Records::destroy(far_of(node));
      word = packed(node, after, before);
    } else {
      *far_of(node) = {NearLink<void>(after), NearLink<void>(before)};
    }
  }
  static void connect(Node* before, Node* after) noexcept {
    set_next(before, after);
    set_previous(after, before);
  }

  // Gives a node a record with the neighbours that it has.
  static void widen(Node* node, FarNeighbours* record) noexcept {
    *record = {NearLink<void>(raw_next(node)), NearLink<void>(raw_previous(node))};
    word_of(node) = block::near_link(record, far_shift) << 1 | is_far;
  }
  template <class Ends>
  [[gnu::noinline]] static void link_apart(Ends& ends, Node* node, bool front) {
    Node* const neighbour = front ? ends.first.get() : ends.last.get();
    word_of(node) = 0;
    if (neighbour != nullptr) {
      if (!reaches(neighbour, node)) {
        make_far(neighbour, node);
      }
      front ? connect(node, neighbour) : connect(neighbour, node);
    }
    (front ? ends.first : ends.last) = decltype(ends.first)(node);
    if (neighbour == nullptr) {
      ends.first = ends.last = decltype(ends.first)(node);
    }
  }
  static void make_far(Node* old, Node* added) {
    FarNeighbours* const record = Records::create();
    if (!is_far_node(old)) {
      FarNeighbours* second;
      try {
        second = Records::create();
      } catch (...) {
        Records::destroy(record);
        throw;
      }
      widen(old, second);
    }
    widen(added, record);
  }

  // The word outlives the entry.
  static void become_bridge(Node* node) noexcept {
    OrderWord* const place = &static_cast<OrderWord&>(node->entry);
    const std::uint32_t word = place->word_;
    std::destroy_at(node);
    ::new (place) OrderWord;
    place->word_ = word | bridge;
  }
  // Frees a bridge between nodes that reach one another; whether it was one.
  template <class Blocks>
  static bool leave_out(Node* node, Blocks& blocks) noexcept {
    if (!is_bridge(node) || !reaches(raw_previous(node), raw_next(node))) {
      return false;
    }
    connect(raw_previous(node), raw_next(node));
    blocks.deallocate(node);
    return true;
  }
};

template <class Node>
template <class Ends, class Blocks>
void PackedOrder<Node>::arrange(Ends& ends, const std::vector<Node*>& nodes, Blocks& blocks) {
  const auto is_apart = [&nodes](std::size_t i) {
    return (i != 0 && !reaches(nodes[i - 1], nodes[i])) || (i + 1 != nodes.size() && !reaches(nodes[i], nodes[i + 1]));
  };
  struct Stock {
    std::vector<FarNeighbours*> records;
    ~Stock() {
      for (FarNeighbours* const record : records) {
        Records::destroy(record);
      }
    }
  } stock;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    if (is_apart(i)) {
      stock.records.push_back(nullptr);
      stock.records.back() = Records::create();
    }
  }
  for (Node* node = ends.first.get(); node != nullptr;) {
    Node* const following = raw_next(node);
    if (is_bridge(node)) {
      blocks.deallocate(node);
    } else if (is_far_node(node)) {
      Records::destroy(far_of(node));
    }
    node = following;
  }
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    word_of(nodes[i]) = 0;
    if (is_apart(i)) {
      widen(nodes[i], stock.records.back());
      stock.records.pop_back();
    }
    Node* const before = i == 0 ? nullptr : nodes[i - 1];
    Node* const after = i + 1 == nodes.size() ? nullptr : nodes[i + 1];
    set(nodes[i], after, before);
  }
  ends.first = decltype(ends.first)(nodes.empty() ? nullptr : nodes.front());
  ends.last = decltype(ends.last)(nodes.empty() ? nullptr : nodes.back());
}

template <class Node>
template <class Ends>
bool PackedOrder<Node>::invariants_hold(const Ends& ends, std::size_t entries) noexcept {
  std::size_t count = 0;
  const Node* before = nullptr;
  for (const Node* node = ends.first.get(); node != nullptr && count <= entries; node = raw_next(node)) {
    const Node* const after = raw_next(node);
    const bool apart = (before != nullptr && !reaches(before, node)) || (after != nullptr && !reaches(node, after));
    if (raw_previous(node) != before || apart != is_far_node(node)) {
      return false;
    }
    if (!is_bridge(node)) {
      ++count;
    } else if (before == nullptr || after == nullptr) {
      return false;
    }
    before = node;
  }
  return before == ends.last.get() && count == entries;
}

}  // namespace blockyard::container

#endif
