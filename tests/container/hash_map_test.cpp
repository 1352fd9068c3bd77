// HashMap beyond the differential test: sizes, access, capacity, exceptions, order.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <iterator>
#include <limits>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "blockyard/allocator.hpp"
#include "blockyard/hash_map.hpp"

std::size_t bytes_of_a_map_in_gnu_mode();  // gnu_mode.cpp

namespace {

/// A string that is equal to itself in capitals, as its std::hash knows.
struct CaselessString : std::string {
  using std::string::string;
  [[nodiscard]] std::string lower() const {
    std::string result = *this;
    std::transform(result.begin(), result.end(), result.begin(),
                   [](char letter) { return static_cast<char>(std::tolower(static_cast<unsigned char>(letter))); });
    return result;
  }
  friend bool operator==(const CaselessString& a, const CaselessString& b) { return a.lower() == b.lower(); }
};

}  // namespace

template <>
struct std::hash<CaselessString> {
  std::size_t operator()(const CaselessString& key) const { return std::hash<std::string>()(key.lower()); }
};

namespace blockyard {
namespace {

template <class Map>
std::vector<int> keys_of(const Map& map) {
  std::vector<int> keys;
  for (const auto& entry : map) {
    keys.push_back(entry.key);
  }
  return keys;
}

// Looks up a key in its own map while it is destroyed.
struct LooksBack {
  const HashMap<int, LooksBack>* map;
  int* found;
  ~LooksBack() { *found += map != nullptr && (map->has(1) || !map->is_empty()) ? 1 : 0; }
};

TEST(HashMap, destructors_of_entries_find_a_map_that_is_cleared_empty) {
  int found = 0;
  HashMap<int, LooksBack> map;
  for (int i = 0; i < 100; ++i) {
    map.insert(i, LooksBack{nullptr, &found});
    map.get(i).map = &map;
  }
  map.clear();
  EXPECT_EQ(found, 0);
  EXPECT_TRUE(map.invariants_hold());
}

/// A map from numbers to values of so many bytes, each aligned to one, two or four.
template <class Part, std::size_t Parts>
void every_entry_is_found() {
  using Value = std::array<Part, Parts>;
  HashMap<Part, Value> map;
  EXPECT_EQ(map.block_alignment() % 8, 0u);
  for (int i = 0; i < 100; ++i) {
    map.insert(static_cast<Part>(i), Value{static_cast<Part>(i)});
  }
  for (int i = 0; i < 100; ++i) {
    const Value* const value = map.getptr(static_cast<Part>(i));
    ASSERT_TRUE(value != nullptr && (*value)[0] == static_cast<Part>(i)) << sizeof(Value) << " bytes, entry " << i;
  }
}

TEST(HashMap, entries_of_any_size_and_alignment_are_found) {
  every_entry_is_found<signed char, 1>();
  every_entry_is_found<signed char, 2>();
  every_entry_is_found<short, 5>();
  every_entry_is_found<int, 2>();
  every_entry_is_found<int, 4>();
  every_entry_is_found<long long, 3>();
  every_entry_is_found<long double, 1>();
}

TEST(HashMap, naming_a_key_enters_it) {
  HashMap<int, int> map;
  map[1];
  const int key = 2;
  map[key];
  EXPECT_EQ(keys_of(map), (std::vector<int>{1, 2}));
}

TEST(HashMap, get_of_a_missing_key_throws_and_getptr_is_null) {
  const HashMap<int, int> map;
  EXPECT_THROW(static_cast<void>(map.get(1)), std::out_of_range);
  EXPECT_EQ(map.getptr(1), nullptr);
  EXPECT_FALSE(map.find(1));
}

TEST(HashMap, reserve_makes_room_so_that_no_insert_grows_it) {
  HashMap<int, int> map;
  map.reserve(1000);
  const std::size_t capacity = map.get_capacity();
  EXPECT_GE(capacity, 1000u);
  for (int i = 0; i < 1000; ++i) {
    map.insert(i, i);
  }
  EXPECT_EQ(map.get_capacity(), capacity);
}

TEST(HashMap, an_absurd_reserve_fails_and_changes_nothing) {
  HashMap<int, int> map{{1, 1}};
  EXPECT_THROW(map.reserve(std::size_t{1} << 40), std::bad_alloc);
  EXPECT_EQ(map.get(1), 1);
}

/// Keys at a stride: m * stride for m in [0, n).
template <class K>
std::size_t longest_search_at(std::uint64_t stride, std::uint64_t n) {
  HashMap<K, int> map;
  for (std::uint64_t i = 0; i < n; ++i) {
    map.insert(static_cast<K>(i * stride), 0);
  }
  EXPECT_EQ(map.size(), n);
  return map.longest_search();
}

// Chunks of twelve. Random hashes at this load give about 10, a bad hash for the stride hundreds.
constexpr std::size_t short_search = 20;

TEST(HashMap, no_stride_of_numbers_makes_searches_long) {
  constexpr std::uint64_t n = 10'000;
  for (unsigned shift = 0; shift < 50; ++shift) {
    EXPECT_LE(longest_search_at<std::uint64_t>(std::uint64_t{1} << shift, n), short_search) << "2^" << shift;
  }
  // Multiples of pages, of a Fibonacci number, of ten pages, where dense numbers repeat; inverses of the multiplication
  // that mixes the hash.
  for (const std::uint64_t stride : {4096u * 3, 4096u * 1001, 2971215073u, 40960u, 1u << 30}) {
    EXPECT_LE(longest_search_at<std::uint64_t>(stride, n), short_search) << stride;
  }
  for (const std::uint64_t stride :
       {0xe188e8a04aacff6fu, 0xe188e8a04aacff6fu << 12, 0x9e3779b97f4a7c15u, 0x1999999a00000000u}) {
    EXPECT_LE(longest_search_at<std::uint64_t>(stride, n), short_search) << stride;
  }
  // The first multiplier of mix() puts the multiples of these into few chunks.
  for (const std::uint64_t stride : {645u, 661u, 2054u}) {
    EXPECT_LE(longest_search_at<std::uint64_t>(stride, n), short_search) << stride;
  }
  EXPECT_LE(longest_search_at<int>(4096, n), short_search);
  EXPECT_LE(longest_search_at<std::int64_t>(static_cast<std::uint64_t>(std::int64_t{-4096}), n), short_search);
}

TEST(HashMap, addresses_as_keys_have_short_searches) {
  HashMap<const void*, int> map;
  const std::vector<std::byte> bytes(1 << 22);
  for (std::size_t i = 0; i < bytes.size(); i += 256) {
    map.insert(&bytes[i], 0);
  }
  EXPECT_LE(map.longest_search(), short_search);
}

TEST(HashMap, two_ranges_of_numbers_far_apart_have_short_searches) {
  HashMap<std::uint32_t, int> map;
  for (std::uint32_t i = 0; i < 20'000; ++i) {
    map.insert(i, 0);
    map.insert(0x8000'0000u + i, 0);
  }
  EXPECT_LE(map.longest_search(), short_search);
  EXPECT_TRUE(map.invariants_hold());
}

TEST(HashMap, numbers_from_the_least_to_the_greatest_fit_one_map) {
  HashMap<std::int64_t, int> map;
  for (int i = -100; i < 100; ++i) {
    map.insert(i, i);
  }
  map.insert(std::numeric_limits<std::int64_t>::min(), -1000);
  map.insert(std::numeric_limits<std::int64_t>::max(), 1000);
  for (int i = -100; i < 100; ++i) {
    EXPECT_EQ(map.get(i), i);
  }
  EXPECT_EQ(map.get(std::numeric_limits<std::int64_t>::min()), -1000);
  EXPECT_EQ(map.get(std::numeric_limits<std::int64_t>::max()), 1000);
  EXPECT_FALSE(map.has(100));
  EXPECT_TRUE(map.invariants_hold());
}

TEST(HashMap, each_dense_number_is_found_in_the_first_chunk) {
  for (const int step : {1, -1, 7919}) {
    HashMap<int, int> map;
    for (int i = 0; i < 100'000; ++i) {
      const int key = static_cast<int>(((std::int64_t{i} * step) % 100'000 + 100'000) % 100'000) - 50'000;
      map.insert(key, i);
    }
    map.reserve(map.get_capacity() + 1);  // grows, so that all keys are seen
    EXPECT_EQ(map.longest_search(), 1u) << step;
    EXPECT_TRUE(map.invariants_hold());
  }
}

TEST(HashMap, a_window_of_dense_numbers_that_moves_on_stays_in_first_chunks) {
  HashMap<int, int> map;
  map.reserve(1'000);
  for (int i = 0; i < 100'000; ++i) {
    map.insert(i, i);
    if (i >= 1'000) {
      ASSERT_TRUE(map.erase(i - 1'000));
    }
  }
  EXPECT_EQ(map.longest_search(), 1u);
  EXPECT_LT(map.get_capacity(), 3'000u);
  EXPECT_TRUE(map.invariants_hold());
}

TEST(HashMap, numbers_that_stop_being_dense_have_short_searches) {
  for (const std::uint64_t stride : {10'240u, 1u << 20, 40'960'000u}) {
    HashMap<std::uint64_t, int> map;
    map.reserve(20'000);
    for (std::uint64_t i = 0; i < 10'000; ++i) {
      map.insert(i, 0);
    }
    for (std::uint64_t i = 1; i <= 10'000; ++i) {
      map.insert(i * stride, 0);
    }
    EXPECT_LE(map.longest_search(), short_search) << stride;
    EXPECT_TRUE(map.invariants_hold());
  }
}

TEST(HashMap, a_number_far_off_does_not_take_room_for_all_between) {
  HashMap<int, int> map;
  for (int i = 0; i < 10'000; ++i) {
    map.insert(i, i);
  }
  map.insert(2'000'000'000, 7);
  EXPECT_LE(map.get_capacity(), 20'480u);
  EXPECT_EQ(map.get(2'000'000'000), 7);
  EXPECT_EQ(map.get(9'999), 9'999);
  EXPECT_TRUE(map.invariants_hold());
}

TEST(HashMap, enumerations_and_reserved_maps_of_numbers_keep_all_keys) {
  enum class Kind : short { first = -300 };
  HashMap<Kind, int> map;
  map.reserve(600);
  const std::size_t capacity = map.get_capacity();
  for (int i = 299; i >= -300; --i) {
    map.insert(static_cast<Kind>(i), i);
  }
  EXPECT_EQ(map.get_capacity(), capacity);
  EXPECT_EQ(map.get(Kind::first), -300);
  EXPECT_EQ(map.size(), 600u);
  EXPECT_TRUE(map.invariants_hold());
}

TEST(HashMap, holds_keys_and_values_that_can_only_be_moved) {
  struct Hash {
    static std::uint64_t hash(const std::unique_ptr<int>& key) { return static_cast<std::uint64_t>(*key); }
  };
  struct Equal {
    static bool compare(const std::unique_ptr<int>& a, const std::unique_ptr<int>& b) { return *a == *b; }
  };
  HashMap<std::unique_ptr<int>, std::unique_ptr<int>, Hash, Equal> map;
  map.insert(std::make_unique<int>(1), std::make_unique<int>(2));
  EXPECT_EQ(*map.get(std::make_unique<int>(1)), 2);
  auto moved = std::move(map);
  EXPECT_EQ(moved.size(), 1u);
}

TEST(HashMap, hashes_of_few_bits_are_spread) {
  struct Sixteen {
    static std::uint16_t hash(std::uint32_t key) { return static_cast<std::uint16_t>(key * 40503u); }
  };
  struct Upper {
    static std::uint64_t hash(std::uint32_t key) { return std::uint64_t{key} << 40; }
  };
  HashMap<std::uint32_t, int, Sixteen> lower;
  HashMap<std::uint32_t, int, Upper> upper;
  for (std::uint32_t key = 0; key < 20'000; ++key) {
    lower.insert(key, 0);
    upper.insert(key, 0);
  }
  EXPECT_LE(lower.longest_search(), short_search);
  EXPECT_LE(upper.longest_search(), short_search);
}

TEST(HashMap, numbers_of_128_bits_that_differ_in_their_upper_half_have_short_searches) {
  __extension__ using Number = __int128;
  HashMap<Number, int> map;
  for (int i = -1000; i < 1000; ++i) {
    map.insert(Number{i} * (Number{1} << 64), i);
  }
  EXPECT_EQ(map.size(), 2000u);
  EXPECT_EQ(map.get(Number{-7} * (Number{1} << 64)), -7);
  EXPECT_LE(map.longest_search(), short_search);
}

TEST(HashMap, a_map_of_numbers_of_128_bits_is_the_same_in_all_language_modes) {
  __extension__ using Number = __int128;
  EXPECT_EQ((sizeof(HashMap<Number, int>)), bytes_of_a_map_in_gnu_mode());
}

TEST(HashMap, strings_with_an_allocator_of_their_own_may_be_keys) {
  using String = std::basic_string<char, std::char_traits<char>, allocator<char>>;
  HashMap<String, int> map;
  map["a"] = 1;
  map[String(100, 'b')] = 2;
  EXPECT_EQ(map.get("a") + map.get(String(100, 'b')), 3);
}

TEST(HashMap, a_string_with_a_hash_of_its_own_is_hashed_by_it) {
  HashMap<CaselessString, int> map;
  map["One"] = 1;
  map["oNE"] = 2;
  EXPECT_EQ(map.size(), 1u);
  EXPECT_EQ(map.get("one"), 2);
}

TEST(HashMap, strings_that_differ_in_one_place_have_short_searches) {
  for (std::size_t length = 1; length < 70; ++length) {
    HashMap<std::string, int> map;
    for (std::size_t place = 0; place < length; ++place) {
      for (int letter = 1; letter < 256; ++letter) {
        std::string key(length, '\0');
        key[place] = static_cast<char>(letter);
        map.insert(key, 0);
      }
    }
    EXPECT_EQ(map.size(), length * 255);
    EXPECT_LE(map.longest_search(), short_search) << length;
  }
}

TEST(HashMap, strings_of_zeros_differ_by_their_length) {
  HashMap<std::string, int> map;
  for (std::size_t length = 0; length < 200; ++length) {
    map.insert(std::string(length, '\0'), static_cast<int>(length));
  }
  EXPECT_LE(map.longest_search(), 3u);
  EXPECT_EQ(map.get(std::string(17, '\0')), 17);
}

TEST(HashMap, a_hasher_that_throws_leaves_the_map_as_it_was) {
  struct Fragile {
    static std::uint64_t hash(int key) {
      if (key == broken()) {
        throw std::runtime_error("no hash");
      }
      return static_cast<std::uint64_t>(key);
    }
    static int& broken() {
      static int key = -1;
      return key;
    }
  };
  HashMap<int, int, Fragile> map;
  for (int i = 0; i < 20; ++i) {
    map.insert(i, i);
  }
  ASSERT_EQ(map.get_capacity(), 20u);
  Fragile::broken() = 13;  // which growth meets
  EXPECT_THROW(map.insert(20, 20), std::runtime_error);
  EXPECT_THROW(map.reserve(1'000), std::runtime_error);
  EXPECT_THROW(map.erase(13), std::runtime_error);
  EXPECT_THROW(map.replace_key(1, 13), std::runtime_error);
  Fragile::broken() = -1;
  EXPECT_EQ(map.size(), 20u);
  EXPECT_FALSE(map.has(20));
  EXPECT_EQ(map.get(13), 13);
  EXPECT_TRUE(map.invariants_hold());
}

template <class Slots>
std::vector<unsigned> listed(Slots slots) {
  std::vector<unsigned> found;
  for (; !slots.is_empty(); slots.drop_first()) {
    found.push_back(slots.first());
  }
  return found;
}

TEST(HashMap, any_comparison_of_tags_finds_the_same_slots) {
  alignas(16) std::uint8_t chunk[16] = {};
  std::uint32_t random = 1;
  for (int round = 0; round < 50'000; ++round) {
    for (std::uint8_t& byte : chunk) {
      random = random * 1'664'525 + 1'013'904'223;
      byte = static_cast<std::uint8_t>(random >> 24 & 0x83);
    }
    const std::uint8_t tag = random >> 8 & 0x83;
    std::vector<unsigned> expected;
    for (unsigned i = 0; i < container::chunk_slots; ++i) {
      if (chunk[i] == tag) {
        expected.push_back(i);
      }
    }
    ASSERT_EQ(listed(container::slots_with(chunk, tag)), expected);
    ASSERT_EQ(listed(container::portable_slots_of(container::tags_equal(chunk, tag))), expected);
    const unsigned slot = random % container::chunk_slots;
    alignas(16) std::uint8_t other[16];
    std::copy(std::begin(chunk), std::end(chunk), other);
    container::set_tag(chunk, slot, tag);
    other[slot] = tag;
    ASSERT_TRUE(std::equal(std::begin(chunk), std::end(chunk), other));
  }
}

TEST(HashMap, a_value_whose_constructor_throws_is_not_entered) {
  struct Fussy {
    explicit Fussy(bool throws = true) {
      if (throws) {
        throw std::runtime_error("no default");
      }
    }
  };
  HashMap<int, Fussy> map;
  EXPECT_THROW(static_cast<void>(map[1]), std::runtime_error);
  EXPECT_TRUE(map.is_empty());
  EXPECT_TRUE(map.invariants_hold());
}

TEST(HashMap, a_removed_entry_may_be_the_current_one_of_a_loop) {
  HashMap<int, int> map;
  for (int i = 0; i < 100; ++i) {
    map.insert(i, i);
  }
  for (auto it = map.begin(); it;) {
    const auto current = it++;
    if (current->key % 2 == 0) {
      map.remove(current);
    }
  }
  EXPECT_EQ(map.size(), 50u);
  EXPECT_TRUE(map.invariants_hold());
}

TEST(HashMap, an_entry_unpacks_into_its_key_and_value) {
  HashMap<int, std::string> map{{1, "one"}};
  for (auto& [key, value] : map) {
    value += std::to_string(key);
  }
  const HashMap<int, std::string>& read = map;
  for (const auto& [key, value] : read) {
    EXPECT_EQ(value, "one1") << key;
  }
}

TEST(HashMap, may_hold_itself_as_a_value) {
  struct Folder {
    HashMap<int, Folder> folders;
  };
  Folder root;
  root.folders[1].folders.insert(2, Folder());
  EXPECT_TRUE(root.folders.get(1).folders.has(2));
}

}  // namespace
}  // namespace blockyard
