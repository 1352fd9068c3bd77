/// RBSet<T>: an ordered set with the interface of Godot's RBSet, on the same B-tree of links as RBMap. An element's
/// address never changes. Bounds, exceptions and thread-safety: rb_map.hpp.
#ifndef BLOCKYARD_RB_SET_HPP
#define BLOCKYARD_RB_SET_HPP

#include <initializer_list>
#include <iterator>
#include <utility>

#include "blockyard/detail/ordered_container.hpp"

namespace blockyard {

template <class T, class C = container::LessDefault, class A = StaticBlocks>
class RBSet : public container::OrderedContainer<RBSet<T, C, A>, T, const T, C, A> {
  using Base = container::OrderedContainer<RBSet, T, const T, C, A>;
  using typename Base::Blocks;

 public:
  using Element = typename Base::Element;
  using Base::Base;
  RBSet() = default;
  template <std::input_iterator I, std::sentinel_for<I> S>
  RBSet(I first, S last, C less = C(), Blocks blocks = Blocks()) : Base(std::move(less), std::move(blocks)) {
    for (; first != last; ++first) {
      insert(*first);
    }
  }
  RBSet(std::initializer_list<T> values, Blocks blocks = Blocks()) : Base(std::move(blocks)) {
    for (const T& value : values) {
      insert(value);
    }
  }

  /// Keeps a shared allocator.
  RBSet& operator=(std::initializer_list<T> values) { return *this = RBSet(values, this->blocks_for_copy()); }

  /// Inserts a value unless it is there. Its element.
  Element* insert(const T& value) { return this->find_or_add(value, value); }
  Element* insert(T&& value) { return this->find_or_add(value, std::move(value)); }
  /// Inserts a value made of `arguments` unless it is there. Its element, and whether that is new.
  template <class... Arguments>
  std::pair<Element*, bool> emplace(Arguments&&... arguments) {
    T value(std::forward<Arguments>(arguments)...);
    return this->emplaced(value, std::move(value));
  }
};

static_assert(sizeof(RBSet<int>) <= 24);

}  // namespace blockyard

#endif
