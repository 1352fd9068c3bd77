// A program of one hundred container types on BLOCKS: twenty-five value types in each of List, HashMap, RBMap and
// RBSet.
#include <cstdio>
#include <utility>

#include "blockyard/hash_map.hpp"
#include "blockyard/list.hpp"
#include "blockyard/rb_map.hpp"
#include "blockyard/rb_set.hpp"
#include "paged_nodes.hpp"

namespace {

using namespace blockyard;

template <int N>
struct Value {
  int words[N % 5 + 1];
  friend bool operator==(const Value&, const Value&) = default;
  friend auto operator<=>(const Value&, const Value&) = default;
};

template <int N>
[[gnu::noinline]] long use(int argument) {
  List<Value<N>, BLOCKS> list;
  HashMap<int, Value<N>, HasherDefault, ComparatorDefault<int>, BLOCKS> map;
  RBMap<int, Value<N>, container::LessDefault, BLOCKS> ordered;
  RBSet<Value<N>, container::LessDefault, BLOCKS> set;
  const Value<N> value{{argument}};
  list.push_back(value);
  list.push_front(value);
  list.insert_after(list.front(), value);
  list.erase(list.front());
  list.sort();
  map.insert(argument, value);
  map[argument + 1] = value;
  map.erase(argument);
  ordered.insert(argument, value);
  ordered.erase(argument + 1);
  set.insert(value);
  set.erase(value);
  long sum = static_cast<long>(list.size() + map.size() + ordered.size() + set.size());
  for (const auto& entry : map) {
    sum += entry.value.words[0];
  }
  list.clear();
  return sum;
}

template <int... N>
long use_all(std::integer_sequence<int, N...>, int argument) {
  return (use<N>(argument) + ...);
}

}  // namespace

int main(int count, char**) { std::printf("%ld\n", use_all(std::make_integer_sequence<int, 25>(), count)); }
