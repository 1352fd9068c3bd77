/// The slot array of HashMap: open addressing over references to nodes. Inside of hash_map.hpp.
///
/// A slot is 32 bits of hash and a link. Home positions rise with the hash, collisions go to the right (linear
/// probing), and of two slots the one farther from home comes first ("Robin Hood", P. Celis 1986): so a search ends as
/// soon as it meets a slot nearer to its home, and growing the array is one pass over both, in order, that touches no
/// node. Removal shifts the following slots back: no tombstones.
#ifndef BLOCKYARD_DETAIL_HASH_SLOTS_HPP
#define BLOCKYARD_DETAIL_HASH_SLOTS_HPP

#include <cstddef>
#include <cstdint>
#include <utility>

#include "blockyard/detail/link.hpp"
#include "blockyard/detail/visibility.h"

namespace blockyard::container {

/// Zeroed memory for arrays; nullptr when memory is exhausted. From 1 MiB on it is mapped, in huge pages where the
/// system allows.
BY_API void* array_allocate(std::size_t bytes) noexcept;
BY_API void array_free(void* array, std::size_t bytes) noexcept;

/// `Link` is NearLink or FarLink of anything.
template <class Link>
class HashSlots {
 public:
  struct Slot {
    std::uint32_t hash;
    Link link;  ///< null: the slot is free
  };

  /// No memory, capacity 0, every search ends at once.
  constexpr HashSlots() = default;
  HashSlots(const HashSlots&) = delete;
  HashSlots& operator=(const HashSlots&) = delete;
  ~HashSlots() { release(); }

  [[nodiscard]] std::uint32_t capacity() const noexcept { return slots_ == nullptr ? 0 : capacity_; }
  /// Entries that fit before the array must grow: thirteen sixteenths. An insert looks for a free slot among about
  /// (1 - load)^-2 / 2: at seven eighths, shuffled inserts took half as long again; three quarters won nothing and
  /// took more memory.
  [[nodiscard]] std::uint32_t limit() const noexcept { return limit_of(capacity()); }

  using Key = std::uint32_t;

  /// Spreads whatever a hasher returns, in such a way that no stride of plain numbers or addresses is a bad one, as
  /// there are for a single multiplication. D. Stafford's variant 13 of the 64-bit finaliser of MurmurHash3 ("Better
  /// bit mixing", 2011); homes are made from the upper half.
  [[nodiscard]] static std::uint32_t mix(std::uint64_t hash) noexcept {
    hash = (hash ^ (hash >> 30)) * 0xbf58476d1ce4e5b9u;
    hash = (hash ^ (hash >> 27)) * 0x94d049bb133111ebu;
    return static_cast<std::uint32_t>(hash >> 32);
  }

  /// Where a search ended: at the entry's link, or where it would be entered; nullptr in an array without memory.
  struct Place {
    Link* link = nullptr;
    bool there = false;
  };
  /// Calls `matches(link)` for each entry of this hash until it returns true.
  template <class Matches>
  [[nodiscard, gnu::always_inline]] Place find_place(std::uint32_t hash, Matches&& matches) const {
    if (slots_ == nullptr) {
      return {};
    }
    std::uint32_t position = home(hash);
    for (std::uint32_t distance = 0;; ++distance) {
      Slot& slot = slots_[position];
      if (!slot.link) {
        return {&slot.link, false};
      }
      if (slot.hash == hash) {
        if (matches(slot.link)) {
          return {&slot.link, true};
        }
      } else if (distance_of(slot.hash, position) < distance) {
        return {&slot.link, false};
      }
      position = after(position);
    }
  }

  /// Enters a link that is not there. The array must have room.
  void insert(std::uint32_t hash, Link link) noexcept;
  /// The same where a search ended, with the array unchanged since.
  void insert_at(Place place, std::uint32_t hash, Link link) noexcept {
    Slot* const slot = slot_of(place.link);
    if (!slot->link) [[likely]] {
      *slot = {hash, link};
    } else {
      displace(slot, hash, link);
    }
  }

  /// Whether the array is too full for a further entry.
  [[nodiscard]] bool must_grow(std::size_t size, Place) const noexcept { return size >= limit(); }

  /// Removes an entry that a search found.
  void erase(Place place) noexcept;

  /// Lets the array have room for `entries`; false, and nothing changed, when memory is exhausted or `entries` is
  /// beyond 2^32.
  [[nodiscard]] bool reserve(std::size_t entries) noexcept;

  /// Slots that an array for `entries` has; 0 when that is beyond the greatest.
  [[nodiscard]] static std::uint32_t capacity_for(std::size_t entries) noexcept;

  /// Empties the array and keeps its memory. O(capacity).
  void clear() noexcept;
  void release() noexcept;
  void swap(HashSlots& other) noexcept {
    std::swap(slots_, other.slots_);
    std::swap(capacity_, other.capacity_);
  }

  /// Slots that the longest search for an entry looks at: how well the hashes are spread. O(capacity).
  [[nodiscard]] std::uint32_t longest_search() const noexcept;

  /// Whether every entry is where a search finds it; counts them. For tests.
  [[nodiscard]] bool invariants_hold(std::size_t entries) const noexcept;

 private:
  // Enters at an entry's place: everything from there to the next free slot moves one to the right.
  void displace(Slot* slot, std::uint32_t hash, Link link) noexcept;

  [[nodiscard]] static Slot* slot_of(Link* link) noexcept {
    return reinterpret_cast<Slot*>(reinterpret_cast<std::byte*>(link) - offsetof(Slot, link));
  }
  [[nodiscard]] static constexpr std::uint32_t limit_of(std::uint32_t capacity) noexcept { return capacity / 16 * 13; }
  static constexpr std::uint32_t least_capacity = 16;

  // Homes rise with the hash whatever the capacity: it need not be a power of two (D. Lemire, "Fast random integer
  // generation", 2019).
  [[nodiscard]] std::uint32_t home(std::uint32_t hash) const noexcept {
    return static_cast<std::uint32_t>((std::uint64_t{hash} * capacity_) >> 32);
  }
  [[nodiscard]] std::uint32_t after(std::uint32_t position) const noexcept {
    return position + 1 == capacity_ ? 0 : position + 1;
  }
  [[nodiscard]] std::uint32_t distance_of(std::uint32_t hash, std::uint32_t position) const noexcept {
    const std::uint32_t begin = home(hash);
    return position >= begin ? position - begin : position + capacity_ - begin;
  }

  Slot* slots_ = nullptr;
  std::uint32_t capacity_ = 0;
};

}  // namespace blockyard::container

#include "blockyard/detail/hash_slots_impl.hpp"

#endif
