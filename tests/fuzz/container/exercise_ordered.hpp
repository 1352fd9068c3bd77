// RBMap and RBSet against std::map and std::set: element pointers kept and rechecked, the tree's invariants walked.
#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "blockyard/rb_map.hpp"
#include "blockyard/rb_set.hpp"
#include "fuzz/exercise.hpp"

namespace blockyard::fuzz {

/// Orders backwards, so that a comparison taken the wrong way round shows.
struct Backwards {
  template <class T>
  bool operator()(const T& a, const T& b) const {
    return b < a;
  }
};

/// A type of a program's own, ordered as bytes. Many begin with others, or share long beginnings; some bytes are zero,
/// some the greatest.
struct Path {
  std::string text;
  friend bool operator==(const Path&, const Path&) = default;
  friend bool operator<(const Path& a, const Path& b) { return a.text < b.text; }
};
template <>
inline Path make<Path>(std::uint32_t number) {
  static constexpr std::string_view pieces[] = {{"\0", 1}, "\xff", "a", "res://scenes/", "\0\0\0\0\0\0\0\0\0"};
  Path path;
  for (; number != 0; number /= 6) {
    path.text += pieces[number % 6 % 5];
  }
  return path;
}

}  // namespace blockyard::fuzz

template <>
struct blockyard::OrderedBytes<blockyard::fuzz::Path> {
  static std::string_view of(const fuzz::Path& path) noexcept { return path.text; }
};

namespace blockyard::fuzz {

template <class K, class V, class C, class A, std::uint32_t Range>
class RBMapExercise {
 public:
  static constexpr unsigned steps_a_check = 64;
  using Tested = RBMap<K, V, C, A>;
  using Element = typename Tested::Element;

  void step(Bytes& bytes) {
    const std::uint8_t choice = bytes.byte() % 24;
    const std::uint32_t number = bytes.below(Range);
    const K key = make<K>(number);
    const V value = make<V>(bytes.byte());
    const auto at = known_.find(key);
    const bool known = at != known_.end();
    switch (choice) {
      case 0:
      case 1:
      case 2:
        REQUIRE(map_.erase(key) == known);
        if (known) {
          known_.erase(at);
        }
        break;
      case 3: {
        Element* const element = map_.find(key);
        REQUIRE(element == (known ? at->second.element : nullptr));
        map_.erase(element);
        if (known) {
          known_.erase(at);
        }
        break;
      }
      case 4: {
        const auto bound = known_.lower_bound(key);
        REQUIRE(map_.lower_bound(key) == (bound == known_.end() ? nullptr : bound->second.element));
        const auto above = known_.upper_bound(key);
        REQUIRE(map_.find_closest(key) == (above == known_.begin() ? nullptr : std::prev(above)->second.element));
        break;
      }
      case 5:
        map_[key] = value;
        put(key, value);
        break;
      case 6:
        // A run of neighbours goes: nodes join and levels vanish.
        for (std::uint32_t i = 0; i < 100; ++i) {
          const K gone = make<K>(number + i);
          REQUIRE(map_.erase(gone) == (known_.erase(gone) == 1));
        }
        break;
      case 7:
        for (std::uint32_t i = 0; i < 100; ++i) {
          put(make<K>(number + i), value);
        }
        break;
      case 8:
        if (bytes.byte() % 16 == 0) {
          map_.clear();
          known_.clear();
        }
        break;
      case 9:
        if (bytes.byte() % 8 == 0) {
          copy();
        }
        break;
      case 10: {
        Tested moved(std::move(map_));
        REQUIRE(map_.is_empty() && map_.front() == nullptr);
        map_ = std::move(moved);
        break;
      }
      case 11:
        if (known && map_.front() != nullptr) {
          map_.remove(map_.begin());
          known_.erase(known_.begin());
        }
        break;
      default:
        put(key, value);
        break;
    }
  }

  void check() {
    REQUIRE(map_.invariants_hold());
    REQUIRE(map_.size() == known_.size());
    auto expected = known_.begin();
    for (auto it = map_.begin(); it != map_.end(); ++it, ++expected) {
      REQUIRE(it.element() == expected->second.element);
      REQUIRE(it->key == expected->first && it->value == expected->second.value);
      require_aligned(&*it);
    }
    REQUIRE(expected == known_.end());
    for (Element* element = map_.back(); element != nullptr; element = element->prev()) {
      --expected;
      REQUIRE(element == expected->second.element);
    }
    REQUIRE(expected == known_.begin());
    REQUIRE((map_.calculate_depth() == 0) == known_.empty());
  }

 private:
  struct Known {
    V value;
    Element* element;
  };

  void put(const K& key, const V& value) {
    Element* const element = map_.insert(key, value);
    REQUIRE(element->key() == key && element->value() == value);
    const auto [at, fresh] = known_.try_emplace(key, Known{value, element});
    REQUIRE(fresh || at->second.element == element);
    at->second.value = value;
  }

  void copy() {
    const Tested copied(map_);
    REQUIRE(copied.invariants_hold());
    map_ = copied;
    Element* element = map_.front();
    for (auto& [key, known] : known_) {
      known.element = element;
      element = element->next();
    }
  }

  Tested map_;
  std::map<K, Known, C> known_;
};

/// The set differs from the map in its element only: insertion, erasure, order.
template <class T, class A>
class RBSetExercise {
 public:
  static constexpr unsigned steps_a_check = 64;

  void step(Bytes& bytes) {
    const bool insert = bytes.byte() % 3 != 0;
    const T value = make<T>(bytes.below(2000));
    if (insert) {
      REQUIRE(set_.insert(value)->get() == value);
      known_.insert(value);
    } else {
      REQUIRE(set_.erase(value) == (known_.erase(value) == 1));
    }
  }
  void check() {
    REQUIRE(set_.invariants_hold() && set_.size() == known_.size());
    REQUIRE(std::equal(set_.begin(), set_.end(), known_.begin(), known_.end()));
  }

 private:
  RBSet<T, container::LessDefault, A> set_;
  std::set<T> known_;
};

inline void exercise_ordered(std::span<const std::uint8_t> input) {
  using Less = container::LessDefault;
  run_one_of<
      RBMapExercise<int, int, Less, StaticBlocks, 20000>, RBMapExercise<int, std::string, Backwards, DirectBlocks, 500>,
      RBMapExercise<std::string, int, Less, StaticBlocks, 5000>,
      RBMapExercise<std::string, Wide, Backwards, DirectBlocks, 300>,
      RBMapExercise<std::uint64_t, Wide, Less, MallocBlocks, 3000>, RBMapExercise<Wide, int, Less, StaticBlocks, 3000>,
      RBSetExercise<int, StaticBlocks>, RBMapExercise<Path, int, Less, StaticBlocks, 40000>,
      RBMapExercise<Path, int, Less, MallocBlocks, 500>, RBSetExercise<std::string, DirectBlocks>>(input);
}

}  // namespace blockyard::fuzz
