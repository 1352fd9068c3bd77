/// How HashMap finds entries whose keys are numbers: by position while the keys are dense, else by hash. Inside of
/// hash_map.hpp.
///
/// Keys that lie close together (0, 1, 2, ... in any order, ids, indices) need no hash: an array of links, indexed by
/// the key's distance from the least one, is smaller than hash slots as long as a quarter of it is in use, has no
/// collisions, and neighbouring keys lie beside one another. So a map of numbers has whichever of the two is the
/// smaller (the array part of Lua's tables: R. Ierusalimschy et al., "The Implementation of Lua 5.0", 2005): it looks
/// whether its keys are dense when the hash slots must grow anyway, and goes back to them with the first key that is
/// too far off. Either change is O(size) and comes at most once in a growth of the hash slots, so inserts stay O(1)
/// amortised whatever the keys.
#ifndef BLOCKYARD_DETAIL_NUMBER_INDEX_HPP
#define BLOCKYARD_DETAIL_NUMBER_INDEX_HPP

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>

#include "blockyard/detail/hash_slots.hpp"

namespace blockyard::container {

template <class K>
concept Number = (std::integral<K> || std::is_enum_v<K>)&&sizeof(K) <= sizeof(std::uint64_t);

/// `Link` is NearLink or FarLink of anything.
template <class Link>
class NumberIndex {
  using Slots = HashSlots<Link>;

 public:
  /// A number in an order that suits it: signed ones are moved up by 2^63.
  using Key = std::uint64_t;
  using Place = typename Slots::Place;

  constexpr NumberIndex() = default;
  NumberIndex(const NumberIndex&) = delete;
  NumberIndex& operator=(const NumberIndex&) = delete;
  ~NumberIndex() { release(); }

  /// Of what the default hasher returns for a number: the number itself, widened.
  template <bool Signed>
  [[nodiscard]] static Key key_of(std::uint64_t number) noexcept {
    return Signed ? number ^ (std::uint64_t{1} << 63) : number;
  }

  [[nodiscard]] bool is_dense() const noexcept { return dense_ != nullptr; }
  /// Hash slots, or the length of the array.
  [[nodiscard]] std::uint32_t capacity() const noexcept { return is_dense() ? dense_->allocated : slots_.capacity(); }

  template <class Matches>
  [[nodiscard, gnu::always_inline]] Place find_place(Key key, Matches&& matches) const {
    if (const Dense* const dense = dense_; dense != nullptr) {
      const Key offset = key - dense->base;
      if (offset >= dense->extent) {
        return {};
      }
      Link* const link = dense_->links() + offset;
      return {link, static_cast<bool>(*link)};
    }
    return slots_.find_place(Slots::mix(key), matches);
  }

  /// Whether a key that is not there can't be entered at `place`, where its search ended.
  [[nodiscard]] bool must_grow(std::size_t size, Place place) const noexcept {
    return is_dense() ? place.link == nullptr : slots_.must_grow(size, place);
  }

  /// Goes over a map's entries: how the index reads keys when it changes its kind.
  struct Walk {
    const void* node;  ///< the first entry's, nullptr when there is none
    /// Tells an entry's key and link, and returns the node of the next.
    const void* (*step)(const void* node, Key& key, Link& link) noexcept;
  };

  /// Makes room for `key` beside `size` entries, which `walk` goes over. False, and nothing changed, when memory is
  /// exhausted.
  [[nodiscard]] bool grow(std::size_t size, Key key, Walk walk) noexcept;

  /// Makes room for `entries` in all, as an array when those that are there are dense. As grow().
  [[nodiscard]] bool reserve(std::size_t entries, Walk walk) noexcept;

  /// Enters a link whose key is not there. There must be room for it.
  void insert(Key key, Link link) noexcept {
    if (is_dense()) {
      dense_->links()[key - dense_->base] = link;
    } else {
      slots_.insert(Slots::mix(key), link);
    }
  }
  /// The same where a search ended, with nothing changed since.
  void insert_at(Place place, Key key, Link link) noexcept {
    if (is_dense()) [[likely]] {
      *place.link = link;
    } else {
      slots_.insert_at(place, Slots::mix(key), link);
    }
  }
  /// Removes an entry that a search found.
  void erase(Place place) noexcept {
    if (is_dense()) {
      *place.link = Link();
    } else {
      slots_.erase(place);
    }
  }

  /// Keeps the memory. O(capacity).
  void clear() noexcept;
  void release() noexcept;
  void swap(NumberIndex& other) noexcept {
    slots_.swap(other.slots_);
    std::swap(dense_, other.dense_);
  }

  /// See HashSlots; an array has no searches.
  [[nodiscard]] std::uint32_t longest_search() const noexcept { return is_dense() ? 1 : slots_.longest_search(); }
  [[nodiscard]] bool invariants_hold(std::size_t entries) const noexcept;

 private:
  /// From the least key to the greatest, both included.
  struct Range {
    Key least = ~Key{0};
    Key greatest = 0;

    [[nodiscard]] bool is_empty() const noexcept { return least > greatest; }
    void include(Key key) noexcept {
      least = std::min(least, key);
      greatest = std::max(greatest, key);
    }
    /// Keys in it; 2^64 counts as one less.
    [[nodiscard]] std::uint64_t span() const noexcept {
      return is_empty() ? 0 : greatest - least == ~Key{0} ? ~Key{0} : greatest - least + 1;
    }
  };

  static constexpr std::uint64_t greatest_length = ~std::uint32_t{0};

  /// The array, with its links behind it. What lies beyond `extent` is zero and as a rule was never touched.
  struct Dense {
    Key base;                 ///< key of the first link
    std::uint32_t extent;     ///< links in use, empty ones included
    std::uint32_t allocated;  ///< links there is memory for
    std::uint64_t reserved;   ///< entries that the map's user announced

    [[nodiscard]] Link* links() noexcept { return reinterpret_cast<Link*>(this + 1); }
  };

  // The longest array that takes no more memory than hash slots for `entries` would.
  [[nodiscard]] static std::uint64_t longest_for(std::size_t entries) noexcept {
    return std::uint64_t{Slots::capacity_for(entries)} * (sizeof(typename Slots::Slot) / sizeof(Link));
  }

  // From hash slots to an array for the keys of `range` and of all entries; false, and nothing changed, when they are
  // not dense or memory is exhausted.
  bool densify(std::size_t entries, std::uint64_t reserved, Range range, Walk walk) noexcept;
  static Dense* allocate(std::uint64_t links) noexcept;
  static void free(Dense* dense) noexcept;
  // Lets the array reach `key`: within its memory, or in a longer one, or false.
  bool extend(std::size_t size, Key key) noexcept;
  bool move_to(std::uint64_t links, Key base) noexcept;
  // From the array to hash slots.
  bool to_slots(std::size_t entries) noexcept;

  Dense* dense_ = nullptr;
  [[no_unique_address]] Slots slots_;  ///< without memory while there is an array
};

}  // namespace blockyard::container

#include "blockyard/detail/number_index_impl.hpp"

#endif
