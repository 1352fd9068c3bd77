/// HashTable: how HashMap finds its entries. Inside of hash_map.hpp.
///
/// The table is an array of *chunks*. A chunk is one cache line: twelve links to entries, a *tag* for each, and eight
/// overflow counts. A tag is 8 bits of the entry's hash, 0 where a slot is free. Tags with the same lower three bits
/// share an overflow count.
///
///   Find    The hash names a chunk. One comparison of all its tags leaves the slots that may hold the key: an entry of
///           another key stays in one case of 255. If none of them holds it, and the overflow count of the tag is 0,
///           the key is not in the table. Otherwise the search goes on 2 * tag + 1 chunks further (double hashing; an
///           odd step reaches every chunk).
///   Insert  takes the first chunk of that sequence with a free slot, and adds 1 to the tag's overflow count of each
///           full chunk before it.
///   Erase   frees the slot and subtracts what the insert added. There are no tombstones, so a table that entries come
///           and go in is never rebuilt.
///   Growth  comes when 10 of 12 slots are in use. It doubles the table and reads all entries in their order.
///
/// Up to 12 entries take one chunk, which has room for 4 or 8 at first. Bounds: hash_map.hpp.
///
/// Source: N. Bronson, X. Shi, "Open-sourcing F14 for faster, more memory-efficient hash tables", 2019. F14 has one
/// overflow count per chunk: in a full table one miss of five then reads a second chunk, with eight one of twenty.
#ifndef BLOCKYARD_DETAIL_HASH_TABLE_HPP
#define BLOCKYARD_DETAIL_HASH_TABLE_HPP

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <new>
#include <utility>
#include <vector>

#if defined(__SSE2__)
#include <emmintrin.h>
#elif defined(__ARM_NEON) && defined(__aarch64__)
#include <arm_neon.h>
#endif

#include "blockyard/detail/link.hpp"
#include "blockyard/detail/visibility.h"
#include "blockyard/hash.hpp"

namespace blockyard::container {

/// Zeroed memory for tables, aligned to 16 bytes, or to a cache line if it has one; nullptr when memory is exhausted.
/// From 1 MiB on it is mapped, in huge pages where the system allows.
BY_API void* array_allocate(std::size_t bytes) noexcept;
BY_API void array_free(void* array, std::size_t bytes) noexcept;

inline constexpr unsigned chunk_slots = 12;
inline constexpr std::uint32_t all_slots = (1u << chunk_slots) - 1;

/// A set of slots of one chunk, `1 << Shift` bits of a `Word` for each.
template <class Word, unsigned Shift>
struct SlotSet {
  Word bits;

  [[nodiscard]] bool is_empty() const noexcept { return bits == 0; }
  [[nodiscard]] unsigned first() const noexcept { return static_cast<unsigned>(std::countr_zero(bits)) >> Shift; }
  void drop_first() noexcept { bits &= bits - 1; }
};

/// The tags of a chunk, and four bytes more.
using TagBytes [[gnu::vector_size(16), gnu::may_alias]] = std::uint8_t;

/// The slots whose bytes are 0xff; the others are 0.
[[nodiscard]] inline SlotSet<std::uint32_t, 0> portable_slots_of(TagBytes equal) noexcept {
  std::uint64_t words[2];
  std::memcpy(words, &equal, sizeof words);
  std::uint32_t found = 0;
  for (unsigned half = 0; half < 2; ++half) {
    const std::uint64_t word = std::endian::native == std::endian::big ? __builtin_bswap64(words[half]) : words[half];
    // One bit of each byte, side by side.
    const std::uint64_t bits = ((word & 0x0101'0101'0101'0101) * 0x0102'0408'1020'4080) >> 56;
    found |= static_cast<std::uint32_t>(bits) << (half * 8);
  }
  return {found & all_slots};
}
#if defined(__SSE2__)
[[nodiscard]] inline SlotSet<std::uint32_t, 0> slots_of(TagBytes equal) noexcept {
  return {static_cast<std::uint32_t>(_mm_movemask_epi8(reinterpret_cast<__m128i>(equal))) & all_slots};
}
#elif defined(__ARM_NEON) && defined(__aarch64__)
// Neon has no movemask: a narrowing shift leaves four bits of each byte, of which one is kept.
[[nodiscard]] inline SlotSet<std::uint64_t, 2> slots_of(TagBytes equal) noexcept {
  const uint8x8_t narrow = vshrn_n_u16(reinterpret_cast<uint16x8_t>(equal), 4);
  return {vget_lane_u64(vreinterpret_u64_u8(narrow), 0) & 0x0000'8888'8888'8888};
}
#else
[[nodiscard]] inline SlotSet<std::uint32_t, 0> slots_of(TagBytes equal) noexcept { return portable_slots_of(equal); }
#endif

[[nodiscard]] inline TagBytes tags_equal(const void* chunk, std::uint32_t tag) noexcept {
  return reinterpret_cast<TagBytes>(*static_cast<const TagBytes*>(chunk) == static_cast<std::uint8_t>(tag));
}
/// The slots whose tag is `tag`. `chunk` is aligned to 16 bytes and begins with the tags.
[[nodiscard]] inline auto slots_with(const void* chunk, std::uint32_t tag) noexcept {
  return slots_of(tags_equal(chunk, tag));
}
/// Sets the tag of a slot. It stores all tags: the next comparison would wait long for a store of one.
inline void set_tag(void* chunk, unsigned slot, std::uint32_t tag) noexcept {
  alignas(32) static constexpr std::array<std::uint8_t, 32> masks = [] {
    std::array<std::uint8_t, 32> made{};
    made[16] = 0xff;
    return made;
  }();
  TagBytes mask;
  std::memcpy(&mask, masks.data() + 16 - slot, sizeof mask);
  TagBytes& tags = *static_cast<TagBytes*>(chunk);
  tags = (tags & ~mask) | (mask & static_cast<std::uint8_t>(tag));
}

/// What mix() multiplies by. The first is the one of 2,000 random numbers that makes searches read the fewest chunks
/// and entries beside their own, at strides of 8 to 4,096 bytes from several bases, in nearly full tables of all sizes:
/// 0.6 of what random keys read. The others are the constants of G. Steele's SplitMix64. Each of them puts the numbers
/// of one stride in thirty into few chunks; a map that meets one of these takes the next multiplier.
inline constexpr std::array<std::uint64_t, 4> spread_multipliers{0x8a68'6a99'b10f'3f8f, 0xbf58'476d'1ce4'e5b9,
                                                                 0x94d0'49bb'1331'11eb, 0x9e37'79b9'7f4a'7c15};
/// The same for number keys that lie close together: 2^64 / 10, its lower half zero. Ten neighbouring keys then share a
/// chunk, each has its own tag, and the next ten go to the next chunk.
inline constexpr std::uint64_t dense_multiplier = 0x1999'999a'0000'0000;
/// The same for hashes that are well spread: mix() returns them as they are.
inline constexpr std::uint64_t no_multiplier = 1;

/// Spreads a hash over all 64 bits: the upper bits are the tag, the lower ones name the chunk.
[[nodiscard]] inline std::uint64_t mix(std::uint64_t hash, std::uint64_t multiplier) noexcept {
#if defined(__x86_64__) && !defined(__clang__)
  // In a loop of searches GCC 12 keeps the 128-bit product of fold_product() in memory.
  if (!__builtin_constant_p(multiplier)) {
    std::uint64_t upper;
    asm("mulq %2" : "+a"(hash), "=d"(upper) : "r"(multiplier) : "cc");
    return hash ^ upper;
  }
#endif
  return fold_product(hash, multiplier);
}

/// A cache line; 32 bytes with room for 4 entries, 48 for 8. `Link` is NearLink or FarLink of anything.
template <class Link>
struct alignas(16) HashChunk {
  std::array<std::uint8_t, chunk_slots> tags{};
  std::uint32_t overflows : 24 = 0;  ///< eight counts of entries that passed this chunk by, each up to greatest_count
  std::uint32_t room : 8 = 0;        ///< in a table of one chunk, or none: entries that fit
  std::array<Link, chunk_slots> links{};
};
static_assert(sizeof(HashChunk<NearLink<void>>) == 64);

template <class Link>
class HashTable {
  using Chunk = HashChunk<Link>;

 public:
  /// Where an entry is; `chunk` is nullptr when it is not there.
  struct Place {
    Chunk* chunk = nullptr;
    unsigned slot = 0;

    [[nodiscard]] Link link() const noexcept { return chunk->links[slot]; }
  };

  /// Reads a map's entries: how a table is rebuilt.
  struct Source {
    static constexpr std::size_t batch = 32;
    struct Entry {
      std::uint64_t hash;  ///< as the hasher returns it
      Link link;
    };
    using Entries = std::array<Entry, batch>;

    const void* node;  ///< of the next entry, nullptr at the end
    /// Reads up to `batch` entries from `node` on, which it moves. How many. Throws what the hasher throws.
    std::size_t (*read)(const void*& node, Entries& entries);
    std::uint64_t multiplier;  ///< what mix() takes for hashes of this map
  };

  /// No memory and no room.
  constexpr HashTable() = default;
  HashTable(const HashTable&) = delete;
  HashTable& operator=(const HashTable&) = delete;
  ~HashTable() { release(); }

  /// Entries that fit.
  [[nodiscard]] std::size_t capacity() const noexcept {
    return mask_ == 0 ? chunks_->room : (std::size_t{mask_} + 1) * chunk_limit;
  }

  /// Of its memory.
  [[nodiscard]] std::size_t bytes() const noexcept {
    return chunks_->room == 0 ? 0
           : mask_ == 0       ? offsetof(Chunk, links) + chunks_->room * sizeof(Link)
                              : (std::size_t{mask_} + 1) * sizeof(Chunk);
  }

  /// Calls `matches(link)` for entries that have probably this hash, until it returns true.
  template <class Matches>
  [[nodiscard, gnu::always_inline]] Place find(std::uint64_t hash, Matches&& matches) const {
    const std::uint32_t tag = tag_of(hash);
    std::uint64_t at = hash;
    do {
      Chunk& chunk = chunks_[at & mask_];
      for (auto slots = slots_with(&chunk, tag); !slots.is_empty(); slots.drop_first()) {
        if (const unsigned slot = slots.first(); matches(chunk.links[slot])) [[likely]] {
          return {&chunk, slot};
        }
      }
      if ((chunk.overflows & count_of(tag, greatest_count)) == 0) [[likely]] {
        return {};
      }
      at += step_of(tag);
    } while (((at ^ hash) & mask_) != 0);  // an odd step comes round after all chunks, not before
    return {};
  }

  /// Enters a link; there must be room. How many full chunks it passed.
  unsigned insert(std::uint64_t hash, Link link) noexcept {
    const std::uint32_t tag = tag_of(hash);
    std::uint64_t at = hash;
    for (unsigned passed = 0;; ++passed) {
      Chunk& chunk = chunks_[at & mask_];
      if (const auto free = slots_with(&chunk, 0); !free.is_empty()) [[likely]] {
        set_tag(&chunk, free.first(), tag);
        chunk.links[free.first()] = link;
        return passed;
      }
      if (!is_greatest(chunk, tag)) [[likely]] {
        chunk.overflows = (chunk.overflows + count_of(tag, 1)) & all_counts;
      }
      at += step_of(tag);
    }
  }

  /// Removes what find() found for this hash.
  void erase(Place place, std::uint64_t hash) noexcept {
    set_tag(place.chunk, place.slot, 0);
    if (&chunks_[hash & mask_] != place.chunk) [[unlikely]] {
      subtract_up_to(place.chunk, hash);
    }
  }

  /// Replaces the table by one with room for `entries`, not 0 and no fewer than there are. False when memory is
  /// exhausted or `entries` is beyond the greatest. Throws what `source` throws. In both cases nothing has changed. For
  /// number keys, stores in `chosen` what mix() takes from now on; it is nullptr for others.
  [[nodiscard, gnu::noinline]] bool rebuild(std::size_t entries, Source source, std::uint64_t* chosen) {
    HashTable larger;
    if (entries <= chunk_slots) {
      const std::size_t room = (entries + 3) / 4 * 4;
      if (!larger.allocate(1, room)) {
        return false;
      }
      if (mask_ != 0 || chunks_->room > room) {
        larger.fill(source);
        swap(larger);
        return true;
      }
      // A chunk that becomes larger keeps its contents.
      larger.chunks_->tags = chunks_->tags;
      std::copy_n(chunks_->links.begin(), chunks_->room, larger.chunks_->links.begin());
      swap(larger);
      return true;
    }
    const std::size_t chunks = std::bit_ceil((entries + chunk_limit - 1) / chunk_limit);
    if (entries > greatest_chunks * chunk_limit || !larger.allocate(chunks, chunk_slots)) {
      return false;
    }
    if (chosen != nullptr) {
      source.multiplier = is_dense(source, chunks)      ? dense_multiplier
                          : *chosen == dense_multiplier ? spread_multipliers.front()
                                                        : *chosen;
    }
    larger.fill(source);
    if (chosen != nullptr) {
      *chosen = source.multiplier;
    }
    swap(larger);
    return true;
  }
  /// Rebuilds the table with the next multiplier, for number keys that `multiplier` spreads badly. Nothing happens
  /// after the last one.
  [[gnu::noinline]] void spread(Source source, std::uint64_t& multiplier) noexcept {
    // The first one if `multiplier` is dense_multiplier, which is not among them.
    const auto* const tried = std::find(spread_multipliers.begin(), spread_multipliers.end(), multiplier);
    const auto* const next = tried == spread_multipliers.end() ? spread_multipliers.begin() : tried + 1;
    HashTable other;
    if (next != spread_multipliers.end() && other.allocate(std::size_t{mask_} + 1, chunk_slots)) {
      source.multiplier = multiplier = *next;
      other.fill(source);
      swap(other);
    }
  }
  /// Full chunks that an insert may pass before the keys count as badly spread. Of random keys, one insert of ten
  /// million into a full table passes more.
  static constexpr unsigned longest_usual_search = 12;

  /// Removes all entries, keeps the memory. O(capacity).
  void clear() noexcept {
    for (std::size_t i = 0; chunks_->room != 0 && i <= mask_; ++i) {
      chunks_[i].tags = {};
      chunks_[i].overflows = 0;
    }
  }
  void release() noexcept {
    if (chunks_->room != 0) {
      array_free(chunks_, bytes());
      chunks_ = const_cast<Chunk*>(&no_chunk);
      mask_ = 0;
    }
  }
  void swap(HashTable& other) noexcept {
    std::swap(chunks_, other.chunks_);
    std::swap(mask_, other.mask_);
  }

  /// Chunks that the longest search for an entry reads. O(size).
  [[nodiscard, gnu::noinline]] std::size_t longest_search(Source source) const {
    std::size_t longest = 0;
    typename Source::Entries entries;
    while (const std::size_t count = source.read(source.node, entries)) {
      for (std::size_t i = 0; i < count; ++i) {
        longest = std::max(longest, search_of(mix(entries[i].hash, source.multiplier), entries[i].link));
      }
    }
    return longest;
  }
  /// Whether a search finds each of the `entries` of `source`, nothing else is there, and the overflow counts are
  /// right. O(capacity).
  [[nodiscard, gnu::noinline]] bool invariants_hold(std::size_t entries, Source source) const {
    std::vector<std::array<std::uint32_t, counts>> passed(std::size_t{mask_} + 1);
    typename Source::Entries read;
    while (const std::size_t count = source.read(source.node, read)) {
      for (std::size_t i = 0; i < count; ++i) {
        const std::uint64_t hash = mix(read[i].hash, source.multiplier);
        const std::size_t search = search_of(hash, read[i].link);
        if (search == 0) {
          return false;
        }
        const std::uint32_t tag = tag_of(hash);
        for (std::size_t chunk = 0; chunk + 1 < search; ++chunk) {
          ++passed[(hash + chunk * step_of(tag)) & mask_][tag % counts];
        }
      }
    }
    std::size_t used = 0;
    for (std::size_t i = 0; i <= mask_; ++i) {
      const Chunk& chunk = chunks_[i];
      const auto free = static_cast<std::size_t>(std::count(chunk.tags.begin(), chunk.tags.end(), 0));
      used += chunk_slots - free;
      for (std::uint32_t tag = 0; tag < counts; ++tag) {
        if (!is_greatest(chunk, tag) &&
            (chunk.overflows & count_of(tag, greatest_count)) != count_of(tag, passed[i][tag])) {
          return false;
        }
      }
      if (mask_ == 0 && chunk_slots - free > chunk.room) {
        return false;
      }
    }
    return used == entries && used <= capacity();
  }

 private:
  static constexpr std::size_t chunk_limit = 10;
  static constexpr std::uint64_t greatest_chunks = std::uint64_t{1} << 28;
  static constexpr unsigned count_bits = 3;
  static constexpr unsigned counts = 8;
  static constexpr std::uint32_t all_counts = (1u << (count_bits * counts)) - 1;
  // An overflow count that has reached it stays: it says only that a search may not end here.
  static constexpr std::uint32_t greatest_count = (1u << count_bits) - 1;
  // A table without memory: every search ends here at once.
  static constexpr Chunk no_chunk{};

  // 32 bits: GCC keeps a byte on the stack as one byte and loads four, which has to wait for that store.
  [[nodiscard]] static std::uint32_t tag_of(std::uint64_t hash) noexcept {
    return static_cast<std::uint32_t>(std::max(hash >> 56, std::uint64_t{1}));
  }
  [[nodiscard]] static std::uint64_t step_of(std::uint32_t tag) noexcept { return 2 * std::uint64_t{tag} + 1; }
  // A number at the place of a tag's overflow count.
  [[nodiscard]] static std::uint32_t count_of(std::uint32_t tag, std::uint32_t number) noexcept {
    return number << (tag % counts * count_bits);
  }
  [[nodiscard]] static bool is_greatest(const Chunk& chunk, std::uint32_t tag) noexcept {
    return (~chunk.overflows & count_of(tag, greatest_count)) == 0;
  }
  // Takes an entry out of the overflow counts of the chunks that it passed. Out of line, since it is rare.
  [[gnu::noinline]] void subtract_up_to(const Chunk* chunk, std::uint64_t hash) noexcept {
    const std::uint32_t tag = tag_of(hash);
    for (std::uint64_t at = hash; &chunks_[at & mask_] != chunk; at += step_of(tag)) {
      Chunk& passed = chunks_[at & mask_];
      if (!is_greatest(passed, tag)) [[likely]] {
        passed.overflows = (passed.overflows - count_of(tag, 1)) & all_counts;
      }
    }
  }

  // Gives a table without memory `chunks` chunks, or one with room for `room`.
  bool allocate(std::size_t chunks, std::size_t room) noexcept {
    const std::size_t wanted = chunks == 1 ? offsetof(Chunk, links) + room * sizeof(Link) : chunks * sizeof(Chunk);
    void* const memory = array_allocate(wanted);
    if (memory == nullptr) {
      return false;
    }
    chunks_ = static_cast<Chunk*>(memory);
    chunks_->room = static_cast<std::uint8_t>(room);
    mask_ = static_cast<std::uint32_t>(chunks - 1);
    return true;
  }
  // Enters all entries of `source`.
  void fill(Source source) {
    typename Source::Entries entries;
    while (const std::size_t count = source.read(source.node, entries)) {
      // All chunks of a batch are on their way before the first is needed.
      for (std::size_t i = 0; i < count; ++i) {
        entries[i].hash = mix(entries[i].hash, source.multiplier);
        __builtin_prefetch(&chunks_[entries[i].hash & mask_], 1);
      }
      for (std::size_t i = 0; i < count; ++i) {
        insert(entries[i].hash, entries[i].link);
      }
    }
  }
  // Whether all keys lie so close together that each chunk gets at most ten.
  static bool is_dense(Source source, std::size_t chunks) {
    // Distances from the first key, so that it does not matter which number is the least.
    typename Source::Entries entries;
    std::uint64_t first = 0;
    std::int64_t least = 0;
    std::int64_t greatest = 0;
    for (bool begins = true; const std::size_t count = source.read(source.node, entries); begins = false) {
      first = begins ? entries[0].hash : first;
      for (std::size_t i = 0; i < count; ++i) {
        const auto distance = static_cast<std::int64_t>(entries[i].hash - first);
        least = std::min(least, distance);
        greatest = std::max(greatest, distance);
      }
      if (static_cast<std::uint64_t>(greatest) - static_cast<std::uint64_t>(least) >= chunks * chunk_limit) {
        return false;  // scattered keys are noticed within the first batch
      }
    }
    return true;
  }
  // Chunks that a search for an entry reads; 0 when it is not found.
  std::size_t search_of(std::uint64_t hash, Link link) const noexcept {
    const Place place = find(hash, [link](Link other) { return other == link; });
    if (place.chunk == nullptr) {
      return 0;
    }
    std::size_t chunks = 1;
    for (std::uint64_t at = hash; &chunks_[at & mask_] != place.chunk; at += step_of(tag_of(hash))) {
      ++chunks;
    }
    return chunks;
  }

  Chunk* chunks_ = const_cast<Chunk*>(&no_chunk);
  std::uint32_t mask_ = 0;  ///< chunks less 1
};

/// The type that all maps over near links share: links are untyped inside.
extern template class BY_API HashTable<NearLink<void>>;

}  // namespace blockyard::container

#endif
