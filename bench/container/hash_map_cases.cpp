// Hash maps of ints and of strings, keys entered in order, found shuffled.
#include <absl/container/flat_hash_map.h>
#include <absl/container/node_hash_map.h>

#include <algorithm>
#include <boost/container/list.hpp>  // node_allocator.hpp is not complete without a container
#include <boost/container/node_allocator.hpp>
#include <memory_resource>
#include <numeric>
#include <random>
#include <unordered_map>

#include "blockyard/allocator.hpp"
#include "blockyard/hash_map.hpp"
#include "case.hpp"

namespace blockyard::bench {
namespace {

std::vector<int> numbers(std::size_t n, unsigned shuffled) {
  std::vector<int> keys(n);
  std::iota(keys.begin(), keys.end(), 0);
  if (shuffled != 0) {
    std::shuffle(keys.begin(), keys.end(), std::mt19937(shuffled));
  }
  return keys;
}

template <class V>
V value_of(int key) {
  if constexpr (std::is_same_v<V, int>) {
    return key;
  } else {
    return std::to_string(key);
  }
}
std::uint64_t weigh(int value) { return static_cast<std::uint64_t>(value); }
std::uint64_t weigh(const std::string& value) { return value.size(); }

// The two interfaces.
template <class K, class V, class A>
V value_type_of(const HashMap<K, V, HasherDefault, ComparatorDefault<K>, A>&);
template <class Map>
typename Map::mapped_type value_type_of(const Map&);
template <class K, class V, class A>
void enter(HashMap<K, V, HasherDefault, ComparatorDefault<K>, A>& map, int key, V&& value) {
  map.insert(int(key), std::move(value));
}
template <class Map, class V>
void enter(Map& map, int key, V&& value) {
  map.emplace(key, std::forward<V>(value));
}
template <class K, class V, class A>
std::uint64_t look_up(const HashMap<K, V, HasherDefault, ComparatorDefault<K>, A>& map, int key) {
  return weigh(*map.getptr(key));
}
template <class Map>
std::uint64_t look_up(const Map& map, int key) {
  return weigh(map.find(key)->second);
}
template <class K, class V>
std::uint64_t weigh_entry(const KeyValue<K, V>& entry) {
  return weigh(entry.value);
}
template <class K, class V>
std::uint64_t weigh_entry(const std::pair<const K, V>& entry) {
  return weigh(entry.second);
}

// Expensive values are made beforehand, some at a time, while the clock stands: making a string costs as much as
// inserting it. A clock reading costs as much as 20 inserts.
constexpr std::size_t made_at_a_time = 4096;

/// Inserts all keys. `values` is room for some values. The caller owns it, since a large malloc here would make glibc
/// consolidate all that the map has freed.
template <class Map, class V>
void fill(const std::string& name, Map& map, const std::vector<int>& keys, std::vector<V>& values) {
  double spent = 0;
  for (std::size_t done = 0; done < keys.size(); done += values.size()) {
    const std::size_t count = std::min(values.size(), keys.size() - done);
    for (std::size_t i = 0; i < count; ++i) {
      values[i] = value_of<V>(keys[done + i]);
    }
    const double begin = cpu_ns();
    for (std::size_t i = 0; i < count; ++i) {
      enter(map, keys[done + i], std::move(values[i]));
    }
    spent += cpu_ns() - begin;
  }
  print(name, spent / static_cast<double>(keys.size()));
}
template <class Map>
void fill(const std::string& name, Map& map, const std::vector<int>& keys, std::vector<int>&) {
  phase(name.c_str(), keys.size(), [&] {
    for (const int key : keys) {
      enter(map, key, int(key));
    }
  });
}

template <class Map, class... Arguments>
void run_with(std::size_t n, Arguments... arguments) {
  const std::vector<int> keys = numbers(n, 0);
  const std::vector<int> probes = numbers(n, 2);
  std::vector<decltype(value_type_of(std::declval<const Map&>()))> values(made_at_a_time);
  const std::size_t before = resident_bytes();
  Map map(arguments...);
  for (const char* const again : {"", "_warm"}) {
    fill(std::string("insert") + again, map, keys, values);
    phase((std::string("find") + again).c_str(), n, [&] {
      std::uint64_t sum = 0;
      for (const int key : probes) {
        sum += look_up(map, key);
      }
      keep(sum);
    });
    phase((std::string("iterate") + again).c_str(), n, [&] {
      std::uint64_t sum = 0;
      for (const auto& entry : map) {
        sum += weigh_entry(entry);
      }
      keep(sum);
    });
    if (*again == '\0') {
      print("bytes", static_cast<double>(resident_bytes() - before) / static_cast<double>(n));
    }
    phase((std::string("clear") + again).c_str(), n, [&] { map.clear(); });
  }
}

template <class Map>
void run(std::size_t n) {
  run_with<Map>(n);
}
void run_pmr(std::size_t n) {
  std::pmr::unsynchronized_pool_resource pool;
  run_with<std::pmr::unordered_map<int, int>>(n, &pool);
}

template <class V, class A>
using Map = HashMap<int, V, HasherDefault, ComparatorDefault<int>, A>;
template <class V>
using UnorderedOnBlocks =
    std::unordered_map<int, V, std::hash<int>, std::equal_to<int>, allocator<std::pair<const int, V>>>;

using UnorderedOnNodes = std::unordered_map<int, int, std::hash<int>, std::equal_to<int>,
                                            boost::container::node_allocator<std::pair<const int, int>>>;

}  // namespace

std::vector<Case> hash_map_cases() {
  return {
      {"hash-map", "HashMap", run<Map<int, StaticBlocks>>},
      {"hash-map", "HashMap-direct", run<Map<int, DirectBlocks>>},
      {"hash-map", "absl::flat_hash_map", run<absl::flat_hash_map<int, int>>},
      {"hash-map", "absl::node_hash_map", run<absl::node_hash_map<int, int>>},
      {"hash-map", "std", run<std::unordered_map<int, int>>},
      {"hash-map", "std+allocator", run<UnorderedOnBlocks<int>>},
      {"hash-map", "std+pmr-pool", run_pmr},
      {"hash-map", "std+node_allocator", run<UnorderedOnNodes>},
      {"hash-map-string", "HashMap", run<Map<std::string, StaticBlocks>>},
      {"hash-map-string", "HashMap-direct", run<Map<std::string, DirectBlocks>>},
      {"hash-map-string", "std", run<std::unordered_map<int, std::string>>},
      {"hash-map-string", "std+allocator", run<UnorderedOnBlocks<std::string>>},
  };
}

}  // namespace blockyard::bench
