// A hash map from non-zero 64-bit keys (addresses, block ids) to small values, made for one lookup per journal line.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "journal/large_table.hpp"

namespace blockyard::journal {

/// Open addressing with linear probing. Erasing shifts the following entries back (Knuth, TAOCP 3, 6.4, algorithm R),
/// so there are no tombstones and long journals do not slow it down. At most 5/8 full. All operations are expected
/// O(1); growing doubles the table. Not thread-safe.
template <typename Value>
class FlatMap {
 public:
  explicit FlatMap(std::size_t slots = 1U << 12) : slots_(std::bit_ceil(slots)) { set_size(); }

  std::size_t size() const { return size_; }

  /// Brings the slot of `key` into the cache; call it some lookups ahead. With more than one, those that follow too:
  /// erasing reads on to the next empty one.
  template <std::size_t slots = 1>
  void prefetch(std::uint64_t key) const {
    const Slot* const slot = &slots_[home(key)];
    for (std::size_t i = 0; i < slots; ++i) __builtin_prefetch(slot + i, 1);
    if constexpr (64 % sizeof(Slot) != 0) __builtin_prefetch(reinterpret_cast<const char*>(slot + slots) - 1, 1);
  }

  /// The value of `key`, or null.
  Value* find(std::uint64_t key) {
    for (std::size_t i = home(key);; i = (i + 1) & mask_) {
      if (slots_[i].key == key) return &slots_[i].value;
      if (slots_[i].key == 0) return nullptr;
    }
  }

  /// Adds `key`; false, and nothing changes, when it is there already.
  bool insert(std::uint64_t key, const Value& value) {
    std::size_t i = home(key);
    for (; slots_[i].key != 0; i = (i + 1) & mask_) {
      if (slots_[i].key == key) return false;
    }
    slots_[i] = {key, value};
    if (++size_ > slots_.size() / 8 * 5) grow();
    return true;
  }

  /// Moves the value of `key` into `value` and erases it; false, and nothing changes, when it is not there.
  bool take(std::uint64_t key, Value& value) {
    std::size_t i = home(key);
    for (; slots_[i].key != key; i = (i + 1) & mask_) {
      if (slots_[i].key == 0) return false;
    }
    value = slots_[i].value;
    --size_;
    for (std::size_t hole = i;;) {
      i = (i + 1) & mask_;
      if (slots_[i].key == 0) {
        slots_[hole].key = 0;
        return true;
      }
      // An entry may move back into the hole unless its home lies after the hole.
      if (((i - home(slots_[i].key)) & mask_) >= ((i - hole) & mask_)) {
        slots_[hole] = slots_[i];
        hole = i;
      }
    }
  }

  template <typename Visit>
  void for_each(Visit visit) const {
    for (const auto& slot : slots_) {
      if (slot.key != 0) visit(slot.key, slot.value);
    }
  }

 private:
  struct Slot {
    std::uint64_t key = 0;  ///< 0: empty
    Value value{};
  };
  using Slots = std::vector<Slot, LargeTableAllocator<Slot>>;

  // Two multiplications: after one alone (Fibonacci hashing), keys at regular strides, as addresses are, make long runs
  // of taken slots. The multipliers are 2^64 over the golden ratio and one of SplitMix64's; the high bits are the best.
  std::size_t home(std::uint64_t key) const {
    key *= 0x9E37'79B9'7F4A'7C15U;
    return static_cast<std::size_t>(((key ^ key >> 32) * 0x94D0'49BB'1331'11EBU) >> shift_);
  }

  void set_size() {
    mask_ = slots_.size() - 1;
    shift_ = 64 - static_cast<unsigned>(std::countr_zero(slots_.size()));
  }

  void grow() {
    Slots old(slots_.size() * 2);
    old.swap(slots_);
    set_size();
    for (const auto& slot : old) {
      if (slot.key == 0) continue;
      std::size_t i = home(slot.key);
      while (slots_[i].key != 0) i = (i + 1) & mask_;
      slots_[i] = slot;
    }
  }

  Slots slots_;
  std::size_t size_ = 0;
  std::size_t mask_ = 0;
  unsigned shift_ = 0;
};

}  // namespace blockyard::journal
