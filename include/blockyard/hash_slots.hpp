/// The slot array of HashMap: open addressing over references to nodes. Inside of hash_map.hpp.
///
/// A slot is 32 bits of hash and a link. Home positions rise with the hash, collisions go to the right (linear
/// probing), and of two slots the one farther from home comes first ("Robin Hood", P. Celis 1986): so a search ends as
/// soon as it meets a slot nearer to its home, and growing the array is one pass over both, in order, that touches no
/// node. Removal shifts the following slots back: no tombstones.
#ifndef BLOCKYARD_HASH_SLOTS_HPP
#define BLOCKYARD_HASH_SLOTS_HPP

#include <cstddef>
#include <cstdint>
#include <utility>

#include "blockyard/link.hpp"
#include "blockyard/visibility.h"

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

  [[nodiscard]] static std::uint32_t mix(std::uint64_t hash) noexcept {
    // Multiplication carries every bit up, the upper half of the product is what homes are made from. 2^64 / golden
    // ratio.
    hash ^= hash >> 32;
    return static_cast<std::uint32_t>((hash * 0x9e3779b97f4a7c15u) >> 32);
  }

  /// Calls `matches(link)` for each entry of this hash until it returns true; returns that entry's slot, or nullptr.
  template <class Matches>
  [[nodiscard]] const Slot* find(std::uint32_t hash, Matches&& matches) const {
    const Place place = find_place(hash, matches);
    return place.there ? place.slot : nullptr;
  }

  /// Where a search ended: at the entry, or where it would be entered; nullptr in an array without memory.
  struct Place {
    Slot* slot = nullptr;
    bool there = false;
  };
  template <class Matches>
  [[nodiscard, gnu::always_inline]] Place find_place(std::uint32_t hash, Matches&& matches) const {
    if (slots_ == nullptr) {
      return {};
    }
    std::uint32_t position = home(hash);
    for (std::uint32_t distance = 0;; ++distance) {
      Slot& slot = slots_[position];
      if (!slot.link) {
        return {&slot, false};
      }
      if (slot.hash == hash) {
        if (matches(slot.link)) {
          return {&slot, true};
        }
      } else if (distance_of(slot.hash, position) < distance) {
        return {&slot, false};
      }
      position = after(position);
    }
  }

  /// Enters a link that is not there. The array must have room.
  void insert(std::uint32_t hash, Link link) noexcept;
  /// The same where a search ended, with the array unchanged since.
  void insert_at(Slot* slot, std::uint32_t hash, Link link) noexcept {
    if (!slot->link) [[likely]] {
      *slot = {hash, link};
    } else {
      displace(slot, hash, link);
    }
  }

  /// Removes an entry that a search found.
  void erase(const Slot* slot) noexcept;

  /// Lets the array have room for `entries`; false, and nothing changed, when memory is exhausted or `entries` is
  /// beyond 2^32.
  [[nodiscard]] bool reserve(std::size_t entries) noexcept;

  /// Empties the array and keeps its memory. O(capacity).
  void clear() noexcept;
  void release() noexcept;
  void swap(HashSlots& other) noexcept {
    std::swap(slots_, other.slots_);
    std::swap(capacity_, other.capacity_);
  }

  /// Whether every entry is where a search finds it; counts them. For tests.
  [[nodiscard]] bool invariants_hold(std::size_t entries) const noexcept;

 private:
  // Enters at an entry's place: everything from there to the next free slot moves one to the right.
  void displace(Slot* slot, std::uint32_t hash, Link link) noexcept;

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

#include "blockyard/hash_slots_impl.hpp"

#endif
