// Maps of one distribution of keys: integers in order, random integers, addresses, strings, paths. Small maps are
// measured many at a time, together as large as one of 2,048 entries, so that reading the clock does not count.
#include <absl/container/btree_map.h>
#include <absl/container/flat_hash_map.h>
#include <absl/container/node_hash_map.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <random>
#include <unordered_map>

#include "blockyard/hash_map.hpp"
#include "blockyard/rb_map.hpp"
#include "case.hpp"

namespace blockyard::bench {
namespace {

using Random = std::mt19937_64;

// Each makes the i-th of its keys. `there` is false for keys that are looked up and never inserted.
struct DenseKeys {
  static constexpr bool repeats = true;  ///< every map has the same keys
  static std::uint64_t make(std::uint64_t i, bool there, Random&) { return there ? i : ~i; }
};
struct RandomKeys {
  static constexpr bool repeats = false;
  static std::uint64_t make(std::uint64_t, bool there, Random& random) { return random() << 1 | there; }
};
struct AddressKeys {
  static constexpr bool repeats = false;
  static const void* make(std::uint64_t i, bool there, Random&) {
    return reinterpret_cast<const void*>(0x7f00'0000'0000u + i * 48 + (there ? 0 : 16));  // blocks of 48 bytes
  }
};
struct StringKeys {
  static constexpr bool repeats = false;
  static std::string make(std::uint64_t, bool there, Random& random) {
    std::string key(16 + random() % 16, there ? 'a' : 'A');
    for (char& letter : key) {
      letter = static_cast<char>(letter + random() % 26);
    }
    return key;
  }
};
struct PathKeys {
  static constexpr bool repeats = false;
  static std::string make(std::uint64_t i, bool there, Random& random) {
    return "res://scenes/level_" + std::to_string(random() % 64) + "/enemy_" + std::to_string(i) +
           (there ? ".tscn" : ".tres");
  }
};

template <class Keys>
using KeyOf = decltype(Keys::make(0, true, std::declval<Random&>()));
template <class K>
using Next = std::conditional_t<sizeof(K) <= 8, K, const K*>;
template <class K>
const K& key_of(const K& next) {
  return next;
}
template <class K>
const K& key_of(const K* next) {
  return *next;
}

template <class Map, class Keys>
void run(std::size_t n) {
  using K = KeyOf<Keys>;
  constexpr bool ours = requires(Map map, K key) { map.has(key); };
  constexpr std::size_t together = 2048;
  constexpr std::size_t operations = 1'000'000;
  constexpr std::size_t entries_weighed = 500'000;
  const std::size_t maps = std::max<std::size_t>(1, together / n);
  const std::size_t total = maps * n;
  const std::size_t rounds = std::max<std::size_t>(1, operations / total);

  Random random(1);
  std::vector<K> keys;
  std::vector<K> missing;
  for (std::size_t i = 0; i < total; ++i) {
    keys.push_back(Keys::make(Keys::repeats ? i % n : i, true, random));
    missing.push_back(Keys::make(i, false, random));
  }
  const auto shuffle_each = [&](std::vector<K>& all) {
    for (std::size_t map = 0; map < maps; ++map) {
      const auto begin = all.begin() + static_cast<std::ptrdiff_t>(map * n);
      std::shuffle(begin, begin + static_cast<std::ptrdiff_t>(n), random);
    }
  };
  if (!Keys::repeats) {
    shuffle_each(keys);
  }
  std::vector<K> probes = keys;
  shuffle_each(probes);
  // Each key's value is the next of a cycle through the keys of its map.
  std::vector<Next<K>> next(total);
  {
    std::vector<std::size_t> order(n);
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::shuffle(order.begin(), order.end(), random);
    for (std::size_t i = 0; i < total; ++i) {
      const std::size_t first = i / n * n;
      const K& following = keys[first + order[(i - first + 1) % n]];
      if constexpr (std::is_pointer_v<Next<K>> && !std::is_pointer_v<K>) {
        next[first + order[i - first]] = &following;
      } else {
        next[first + order[i - first]] = following;
      }
    }
  }

  const auto fill = [&](Map& map, std::size_t from) {
    for (std::size_t i = from; i < from + n; ++i) {
      if constexpr (ours) {
        map.insert(keys[i], next[i]);
      } else {
        map.emplace(keys[i], next[i]);
      }
    }
  };
  const auto is_there = [](const Map& map, const K& key) {
    if constexpr (ours) {
      return map.has(key);
    } else {
      return map.contains(key);
    }
  };
  const auto follow = [](const Map& map, const K& key) {
    if constexpr (requires { map.getptr(key); }) {
      return *map.getptr(key);
    } else if constexpr (ours) {
      return map.find(key)->value();
    } else {
      return map.find(key)->second;
    }
  };

  enum Phase { insert, find, miss, dependent, iterate, erase, phases };
  double spent[phases] = {};
  const auto measure = [&](Phase phase, auto&& work) {
    const double begin = cpu_ns();
    work();
    spent[phase] += cpu_ns() - begin;
  };
  const auto in_each = [&](std::vector<Map>& all, auto&& work) {
    for (std::size_t i = 0; i < total; i += n) {
      work(all[i / n], i);
    }
  };

  double bytes = 0;
  for (std::size_t round = 0; round < rounds; ++round) {
    const std::size_t before = resident_bytes();
    std::vector<Map> all(maps);
    measure(insert, [&] { in_each(all, fill); });
    if (round == 0) {
      bytes = static_cast<double>(resident_bytes() - before) / static_cast<double>(total);
    }
    std::uint64_t found = 0;
    const auto look_up = [&](const std::vector<K>& wanted) {
      in_each(all, [&](const Map& map, std::size_t from) {
        for (std::size_t i = from; i < from + n; ++i) {
          found += is_there(map, wanted[i]);
        }
      });
    };
    shuffle_each(probes);
    measure(find, [&] { look_up(probes); });
    measure(miss, [&] { look_up(missing); });
    measure(dependent, [&] {
      in_each(all, [&](const Map& map, std::size_t from) {
        Next<K> at = next[from];
        for (std::size_t i = 0; i < n; ++i) {
          at = follow(map, key_of<K>(at));
        }
        found += at == next[from];
      });
    });
    measure(iterate, [&] {
      in_each(all, [&](const Map& map, std::size_t) {
        for (const auto& entry : map) {
          if constexpr (ours) {
            found += entry.value == Next<K>();
          } else {
            found += entry.second == Next<K>();
          }
        }
      });
    });
    keep(found);
    shuffle_each(probes);
    measure(erase, [&] {
      in_each(all, [&](Map& map, std::size_t from) {
        for (std::size_t i = from; i < from + n; ++i) {
          map.erase(probes[i]);
        }
      });
    });
  }
  if (total < entries_weighed) {
    const std::size_t before = resident_bytes();
    std::vector<Map> many(entries_weighed / n);
    for (std::size_t i = 0; i < many.size(); ++i) {
      fill(many[i], i % maps * n);
    }
    bytes = static_cast<double>(resident_bytes() - before) / static_cast<double>(many.size() * n);
  }
  const char* const names[] = {"insert", "find", "miss", "dependent_find", "iterate", "erase"};
  for (int phase = 0; phase < phases; ++phase) {
    print(names[phase], spent[phase] / static_cast<double>(rounds * total));
  }
  print("bytes", bytes);
}

template <class Keys>
void add_hash_maps(std::vector<Case>& cases, std::string_view workload) {
  using K = KeyOf<Keys>;
  cases.insert(cases.end(), {
                                {workload, "HashMap", run<HashMap<K, Next<K>>, Keys>},
                                {workload, "absl::node_hash_map", run<absl::node_hash_map<K, Next<K>>, Keys>},
                                {workload, "absl::flat_hash_map", run<absl::flat_hash_map<K, Next<K>>, Keys>},
                                {workload, "std", run<std::unordered_map<K, Next<K>>, Keys>},
                            });
}
template <class Keys>
void add_ordered_maps(std::vector<Case>& cases, std::string_view workload) {
  using K = KeyOf<Keys>;
  cases.insert(cases.end(), {
                                {workload, "RBMap", run<RBMap<K, Next<K>>, Keys>},
                                {workload, "absl::btree_map", run<absl::btree_map<K, Next<K>>, Keys>},
                                {workload, "std", run<std::map<K, Next<K>>, Keys>},
                            });
}

}  // namespace

std::vector<Case> key_cases() {
  std::vector<Case> cases;
  add_hash_maps<DenseKeys>(cases, "hash-dense");
  add_hash_maps<RandomKeys>(cases, "hash-random");
  add_hash_maps<AddressKeys>(cases, "hash-addresses");
  add_hash_maps<StringKeys>(cases, "hash-strings");
  add_hash_maps<PathKeys>(cases, "hash-paths");
  add_ordered_maps<DenseKeys>(cases, "ordered-dense");
  add_ordered_maps<RandomKeys>(cases, "ordered-random");
  add_ordered_maps<StringKeys>(cases, "ordered-strings");
  add_ordered_maps<PathKeys>(cases, "ordered-paths");
  return cases;
}

}  // namespace blockyard::bench
