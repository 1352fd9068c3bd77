// List against std::list: the same operations on both, element pointers kept and rechecked, invariants walked along the
// way.
#pragma once

#include <algorithm>
#include <list>
#include <utility>
#include <vector>

#include "blockyard/list.hpp"
#include "fuzz/exercise.hpp"

namespace blockyard::fuzz {

template <class T, class A, class Ownership = Unowned>
class ListExercise {
 public:
  static constexpr unsigned steps_a_check = 16;
  using Tested = List<T, A, Ownership>;
  using Element = typename Tested::Element;

  void step(Bytes& bytes) {
    const std::uint8_t choice = bytes.byte() % 24;
    const T value = make<T>(bytes.byte());
    if (choice < 4 || known_.empty()) {
      known_.push_back({value, list_.push_back(value)});
      return;
    }
    const auto at = pick(bytes);
    switch (choice) {
      case 4:
        known_.push_front({value, list_.push_front(value)});
        break;
      case 5:
      case 6:
        known_.insert(std::next(at), {value, list_.insert_after(at->element, value)});
        break;
      case 7:
      case 8:
        known_.insert(at, {value, list_.insert_before(at->element, value)});
        break;
      case 9:
        known_.push_back({value, list_.insert_before(nullptr, value)});
        break;
      case 10:
        list_.pop_back();
        known_.pop_back();
        break;
      case 11:
        list_.pop_front();
        known_.pop_front();
        break;
      case 12:
        REQUIRE(list_.erase(at->element));
        known_.erase(at);
        break;
      case 13: {
        const auto found = std::find_if(known_.begin(), known_.end(), [&](const Known& k) { return k.value == value; });
        REQUIRE(list_.find(value) == (found == known_.end() ? nullptr : found->element));
        REQUIRE(list_.erase(value) == (found != known_.end()));
        if (found != known_.end()) {
          known_.erase(found);
        }
        break;
      }
      case 14: {
        const auto other = pick(bytes);
        list_.swap(at->element, other->element);
        std::swap(*at, *other);
        break;
      }
      case 15:
        list_.move_to_back(at->element);
        known_.splice(known_.end(), known_, at);
        break;
      case 16:
        list_.move_to_front(at->element);
        known_.splice(known_.begin(), known_, at);
        break;
      case 17: {
        const auto other = pick(bytes);
        list_.move_before(at->element, other->element);
        if (at != other) {
          known_.splice(other, known_, at);
        }
        break;
      }
      case 18:
        list_.reverse();
        known_.reverse();
        break;
      case 19:
        list_.sort();
        known_.sort([](const Known& a, const Known& b) { return a.value < b.value; });
        break;
      case 20:
        if (bytes.byte() % 8 == 0) {
          list_.clear();
          known_.clear();
        }
        break;
      case 21:
        copy();
        break;
      case 22: {
        Tested moved(std::move(list_));
        REQUIRE(list_.is_empty());
        list_ = std::move(moved);
        break;
      }
      default:
        owned(at);
        break;
    }
  }

  void check() {
    REQUIRE(list_.invariants_hold());
    REQUIRE(list_.size() == known_.size());
    auto expected = known_.begin();
    for (auto it = list_.begin(); it != list_.end(); ++it, ++expected) {
      REQUIRE(it.element() == expected->element);
      REQUIRE(*it == expected->value);
      require_aligned(&*it);
    }
    REQUIRE(expected == known_.end());
    if (!known_.empty()) {
      REQUIRE(list_.get(known_.size() / 2) ==
              std::next(known_.begin(), static_cast<std::ptrdiff_t>(known_.size() / 2))->value);
      REQUIRE(list_.back() == known_.back().element && list_.front() == known_.front().element);
    }
  }

 private:
  /// What std::list holds: the value, and the element that must go on holding it.
  struct Known {
    T value;
    Element* element;
  };
  using Reference = std::list<Known>;

  typename Reference::iterator pick(Bytes& bytes) {
    return std::next(known_.begin(),
                     static_cast<std::ptrdiff_t>(bytes.below(static_cast<std::uint32_t>(known_.size()))));
  }

  void copy() {
    const Tested copied(list_);
    REQUIRE(copied == list_ && copied.invariants_hold());
    Tested assigned;
    assigned.push_back(make<T>(1));
    assigned = copied;
    REQUIRE(assigned == list_);
    list_.swap(assigned);
    // The elements are others now: learn their addresses again.
    Element* element = list_.front();
    for (Known& known : known_) {
      known.element = element;
      element = element->next();
    }
  }

  void owned(typename Reference::iterator at) {
    if constexpr (std::is_same_v<Ownership, Owned>) {
      at->element->erase();
      known_.erase(at);
    } else {
      at->element->set(at->value);
    }
  }

  Tested list_;
  Reference known_;
};

/// One input, on every kind of list.
inline void exercise_list(std::span<const std::uint8_t> input) {
  run_one_of<ListExercise<int, StaticBlocks>, ListExercise<int, DirectBlocks>, ListExercise<std::string, StaticBlocks>,
             ListExercise<std::string, DirectBlocks, Owned>, ListExercise<Wide, StaticBlocks, Owned>,
             ListExercise<Wide, MallocBlocks>>(input);
}

}  // namespace blockyard::fuzz
