// HashMap against std::unordered_map and a std::list for the order: pointers kept and rechecked, invariants walked.
#pragma once

#include <cstdint>
#include <list>
#include <type_traits>
#include <unordered_map>
#include <utility>

#include "blockyard/hash_map.hpp"
#include "fuzz/exercise.hpp"

namespace blockyard::fuzz {

/// All keys of a residue collide: long runs of slots, wrapped around the array's end too.
struct PoorHasher {
  template <class T>
  static std::uint32_t hash(const T& key) {
    return static_cast<std::uint32_t>(std::hash<T>()(key) % 3) * 0x7fffffffu;
  }
};

/// Numbers that are dense for a stretch, then scattered, on both sides of 0: an index by position and one by hash in
/// turn.
struct Scattered {
  static std::int64_t key(std::uint32_t number, std::uint32_t phase) {
    const std::int64_t near = std::int64_t{number} - 300;
    return phase % 4 == 3 && number % 8 == 0 ? near * 0x123456789 : near;
  }
};

template <class K, class V, class Hasher, class A>
class HashMapExercise {
 public:
  static constexpr unsigned steps_a_check = 32;
  using Tested = HashMap<K, V, Hasher, ComparatorDefault<K>, A>;

  void step(Bytes& bytes) {
    ++steps_;
    const std::uint8_t choice = bytes.byte() % 20;
    const K key = key_of(bytes.below(600));
    const V value = make<V>(bytes.byte());
    const bool known = places_.contains(key);
    switch (choice) {
      case 0:
        REQUIRE(map_.erase(key) == known);
        if (known) {
          forget(key);
        }
        break;
      case 1: {
        const auto it = map_.find(key);
        REQUIRE(static_cast<bool>(it) == known);
        map_.remove(it);
        if (known) {
          forget(key);
        }
        break;
      }
      case 2: {
        const K other = key_of(bytes.below(600));
        const bool expected = known && (other == key || !places_.contains(other));
        REQUIRE(map_.replace_key(key, other) == expected);
        if (expected) {
          const auto at = places_[key];
          places_.erase(key);
          at->key = other;
          places_[other] = at;
        }
        break;
      }
      case 3:
        put(key, value, true);
        break;
      case 4:
        map_[key] = value;
        put(key, value, false);
        break;
      case 5:
        map_.reserve(bytes.below(900));
        REQUIRE(map_.get_capacity() >= map_.size());
        break;
      case 6:
        if (const std::uint8_t how = bytes.byte() % 8; how == 0) {
          map_.sort();
          order_.sort([](const Known& a, const Known& b) { return a.key < b.key; });
        } else if (how == 1) {
          map_.sort_by([](const auto& a, const auto& b) { return b.key < a.key; });
          order_.sort([](const Known& a, const Known& b) { return b.key < a.key; });
        }
        break;
      case 7:
        if (bytes.byte() % 16 == 0) {
          map_.clear();
          order_.clear();
          places_.clear();
        }
        break;
      case 8:
        if (bytes.byte() % 4 == 0) {
          copy();
        }
        break;
      case 9: {
        Tested moved(std::move(map_));
        REQUIRE(map_.is_empty() && !map_.begin());
        map_ = std::move(moved);
        break;
      }
      case 10:
      case 11:
        REQUIRE(map_.has(key) == known);
        REQUIRE((map_.getptr(key) != nullptr) == known);
        if (known) {
          REQUIRE(map_.get(key) == places_[key]->value);
        }
        break;
      default:
        put(key, value, false);
        break;
    }
  }

  void check() {
    REQUIRE(map_.invariants_hold());
    REQUIRE(map_.size() == order_.size());
    auto expected = order_.begin();
    for (const auto& entry : map_) {
      REQUIRE(&entry == expected->address);
      REQUIRE(entry.key == expected->key && entry.value == expected->value);
      require_aligned(&entry);
      ++expected;
    }
    REQUIRE(expected == order_.end());
    for (auto it = map_.end(); it != map_.begin();) {
      REQUIRE(&*--it == (--expected)->address);
    }
    if (!order_.empty()) {
      REQUIRE(map_.last()->key == order_.back().key);
    }
  }

 private:
  struct Known {
    K key;
    V value;
    const void* address;  ///< of the entry, as long as it lives
  };
  using Order = std::list<Known>;

  void put(const K& key, const V& value, bool front) {
    const auto it = map_.insert(key, value, front);
    REQUIRE(it->key == key && it->value == value);
    if (const auto found = places_.find(key); found != places_.end()) {
      found->second->value = value;
      REQUIRE(found->second->address == &*it);
      return;
    }
    const auto at = order_.insert(front ? order_.begin() : order_.end(), Known{key, value, &*it});
    places_[key] = at;
  }

  K key_of(std::uint32_t number) const {
    if constexpr (std::is_same_v<K, std::int64_t>) {
      return Scattered::key(number, steps_ / 500);
    } else {
      return make<K>(number);
    }
  }

  void forget(const K& key) {
    const auto found = places_.find(key);
    order_.erase(found->second);
    places_.erase(found);
  }

  void copy() {
    const Tested copied(map_);
    REQUIRE(copied.invariants_hold() && copied.size() == map_.size());
    map_ = copied;
    auto it = map_.begin();
    for (Known& known : order_) {
      known.address = &*it;
      ++it;
    }
  }

  Tested map_;
  std::uint32_t steps_ = 0;
  Order order_;
  std::unordered_map<K, typename Order::iterator> places_;
};

inline void exercise_hash_map(std::span<const std::uint8_t> input) {
  run_one_of<HashMapExercise<int, int, HasherDefault, StaticBlocks>,
             HashMapExercise<int, std::string, HasherDefault, DirectBlocks>,
             HashMapExercise<std::string, int, HasherDefault, StaticBlocks>,
             HashMapExercise<int, int, PoorHasher, StaticBlocks>,
             HashMapExercise<std::string, Wide, PoorHasher, DirectBlocks>,
             HashMapExercise<std::int64_t, std::string, HasherDefault, StaticBlocks>,
             HashMapExercise<int, Wide, HasherDefault, MallocBlocks>>(input);
}

}  // namespace blockyard::fuzz
