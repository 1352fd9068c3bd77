// Ordered maps of random ints.
#include <absl/container/btree_map.h>

#include <algorithm>
#include <boost/container/adaptive_pool.hpp>
#include <boost/container/map.hpp>
#include <boost/container/node_allocator.hpp>
#include <map>
#include <memory_resource>
#include <numeric>
#include <random>

#include "blockyard/allocator.hpp"
#include "blockyard/rb_map.hpp"
#include "case.hpp"

namespace blockyard::bench {
namespace {

template <class Map>
void measure(Map& map, std::size_t n) {
  std::vector<int> keys(n);
  std::iota(keys.begin(), keys.end(), 0);
  std::shuffle(keys.begin(), keys.end(), std::mt19937(1));
  std::vector<int> probes = keys;
  std::shuffle(probes.begin(), probes.end(), std::mt19937(2));
  constexpr bool ours = requires { map.calculate_depth(); };
  const std::size_t before = resident_bytes();
  for (const char* const again : {"", "_warm"}) {
    phase((std::string("insert") + again).c_str(), n, [&] {
      for (const int key : keys) {
        if constexpr (ours) {
          map.insert(key, key);
        } else {
          map.emplace(key, key);
        }
      }
    });
    if (*again == '\0') {
      print("bytes", static_cast<double>(resident_bytes() - before) / static_cast<double>(n));
    }
    phase((std::string("find") + again).c_str(), n, [&] {
      std::uint64_t sum = 0;
      for (const int key : probes) {
        if constexpr (ours) {
          sum += static_cast<std::uint64_t>(map.find(key)->value());
        } else {
          sum += static_cast<std::uint64_t>(map.find(key)->second);
        }
      }
      keep(sum);
    });
    phase((std::string("iterate") + again).c_str(), n, [&] {
      std::uint64_t sum = 0;
      for (const auto& entry : map) {
        if constexpr (ours) {
          sum += static_cast<std::uint64_t>(entry.value);
        } else {
          sum += static_cast<std::uint64_t>(entry.second);
        }
      }
      keep(sum);
    });
    phase((std::string("clear") + again).c_str(), n, [&] { map.clear(); });
  }
}

template <class Map>
void run(std::size_t n) {
  Map map;
  measure(map, n);
}
void run_pmr(std::size_t n) {
  std::pmr::unsynchronized_pool_resource pool;
  std::pmr::map<int, int> map(&pool);
  measure(map, n);
}

using Pair = std::pair<const int, int>;
template <class A>
using Map = RBMap<int, int, container::LessDefault, A>;

}  // namespace

std::vector<Case> ordered_cases() {
  return {
      {"ordered-map", "RBMap", run<Map<StaticBlocks>>},
      {"ordered-map", "RBMap-direct", run<Map<DirectBlocks>>},
      {"ordered-map", "std", run<std::map<int, int>>},
      {"ordered-map", "std+allocator", run<std::map<int, int, std::less<int>, allocator<Pair>>>},
      {"ordered-map", "std+pmr-pool", run_pmr},
      {"ordered-map", "boost+node_allocator",
       run<boost::container::map<int, int, std::less<int>, boost::container::node_allocator<Pair>>>},
      {"ordered-map", "boost+adaptive_pool",
       run<boost::container::map<int, int, std::less<int>, boost::container::adaptive_pool<Pair>>>},
      {"ordered-map", "absl::btree_map", run<absl::btree_map<int, int>>},
  };
}

}  // namespace blockyard::bench
