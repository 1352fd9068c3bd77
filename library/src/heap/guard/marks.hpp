// What the guard writes into a small block of a thread's slab, and whether it is still there.
//
// While the block is live: its bytes, fill up to the last word, the canary. Once it is free: poison, the canary.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "base/pages.hpp"
#include "checks/report.hpp"
#include "checks/watched.hpp"
#include "heap/guard/guard.hpp"
#include "heap/size_class.hpp"

namespace blockyard::heap::guard {

inline constexpr std::size_t word_bytes = sizeof(std::uint64_t);
inline constexpr std::size_t canary_bytes = word_bytes;
inline constexpr char written_behind[] = "something was written behind the end of a block";
inline constexpr char written_before[] = "something was written before the beginning of a block";

// What class_bytes computes, in one line of the cache.
alignas(64) inline constexpr std::array<std::uint16_t, class_count> bytes_of_class = [] {
  std::array<std::uint16_t, class_count> bytes{};
  for (unsigned index = 0; index < class_count; ++index) {
    bytes[index] = static_cast<std::uint16_t>(class_bytes(index));
  }
  return bytes;
}();

struct Block {
  char* begin;
  unsigned size_class;
  bool has_one_before;

  std::size_t bytes() const { return bytes_of_class[size_class]; }
  std::size_t room() const { return bytes() - canary_bytes; }
};

inline std::uint64_t load(const char* from) {
  std::uint64_t word = 0;
  std::memcpy(&word, from, sizeof word);
  return word;
}
inline void store(char* to, std::uint64_t word) { std::memcpy(to, &word, sizeof word); }
constexpr std::uint64_t word_of(unsigned char byte) { return byte * (~std::uint64_t{0} / 0xFF); }

// --- fill ---

/// The bytes from `from` to `end`, at most two words of them, hold fill from here on; there is a word before `end`. In
/// a checked build all of them do, up to a page.
inline void write_fill(char* from, char* end) {
  constexpr std::uint64_t fill = word_of(checks::around_byte);
  const auto slack = static_cast<std::size_t>(end - from);
  if (thorough) {
    std::memset(from, checks::around_byte, std::min(slack, base::page_size()));
  } else if (slack >= word_bytes) {
    store(from, fill);
    store(slack >= 2 * word_bytes ? from + word_bytes : end - word_bytes, fill);
  } else if (slack != 0) {
    const std::uint64_t theirs = ~std::uint64_t{0} >> 8 * slack;  // little-endian: the first bytes
    store(end - word_bytes, (load(end - word_bytes) & theirs) | (fill & ~theirs));
  }
}

inline bool is_filled(const char* from, const char* end) {
  constexpr std::uint64_t fill = word_of(checks::around_byte);
  const auto slack = static_cast<std::size_t>(end - from);
  if (thorough) {
    return checks::is_filled(from, std::min(end, from + base::page_size()), checks::around_byte);
  }
  if (slack >= word_bytes) {
    return ((load(from) ^ fill) | (load(slack >= 2 * word_bytes ? from + word_bytes : end - word_bytes) ^ fill)) == 0;
  }
  return slack == 0 || ((load(end - word_bytes) ^ fill) >> 8 * (word_bytes - slack)) == 0;
}

// --- the canary: a block's last word ---

/// Bits 8 to 22 say how many bytes before the word were not asked for, bit 23 whether the block is free. The bits above
/// depend on the block's address. The first byte is neither 0, so that a terminator written behind a string shows, nor
/// any of a text in UTF-8.
inline constexpr std::uint64_t canary_first_byte = 0xFB;
inline constexpr unsigned canary_told_bits = 24;  // the lowest, with the first byte
inline constexpr std::uint64_t free_bit = 1u << 15;
inline constinit std::uint64_t canary_key = 0;

inline std::uint64_t canary_of(const Block& block) {
  return canary_key ^ reinterpret_cast<std::uintptr_t>(block.begin) << canary_told_bits;
}
inline void write_canary_word(const Block& block, std::uint64_t told) {
  store(block.begin + block.room(), canary_of(block) ^ told << 8);
}
/// Of an intact one: the bytes not asked for, and free_bit.
inline std::uint64_t told_by_canary(const Block& block) {
  return std::rotr(load(block.begin + block.room()) ^ canary_of(block), 8);
}
inline bool is_canary_intact(const Block& block) { return (told_by_canary(block) & ~free_bit) <= block.room(); }

// --- live blocks ---

[[gnu::always_inline]] inline void write_canary(const Block& block, std::size_t size) {
  write_fill(block.begin + size, block.begin + block.room());
  write_canary_word(block, block.room() - size);
}

inline constexpr std::size_t not_intact = ~std::size_t{0};

/// Bytes asked for of a live block; not_intact: it is none, or something was written around it.
[[gnu::always_inline]] inline std::size_t size_if_intact(const Block& block) {
  const std::size_t room = block.room();
  const std::uint64_t slack = told_by_canary(block);
  if (slack > room || !is_filled(block.begin + room - slack, block.begin + room)) [[unlikely]] {
    return not_intact;
  }
  if (block.has_one_before && !is_canary_intact({block.begin - block.bytes(), block.size_class, false})) [[unlikely]] {
    return not_intact;
  }
  return room - slack;
}

/// Why it is not; null: it was freed.
inline const char* fault_of(const Block& block) {
  const std::uint64_t told = told_by_canary(block);
  if (is_canary_intact(block) && (told & free_bit) != 0) {
    return nullptr;
  }
  return told <= block.room() && is_filled(block.begin + block.room() - told, block.begin + block.room())
             ? written_before
             : written_behind;
}

// --- freed blocks ---

/// A freed block begins with poison: its first four words, or all that it has room for. Another word of it stands where
/// the bytes that were asked for end.
struct Poison {
  static constexpr std::uint64_t word = word_of(checks::freed_byte);

  explicit Poison(const Block& block)
      : begin(block.begin), last(block.begin + std::min(block.room(), 4 * word_bytes) - 2 * word_bytes) {}
  static bool fits(const Block& block) { return block.room() >= 2 * word_bytes; }
  static char* at_end(const Block& block, std::size_t size) {
    return block.begin + std::max(size, word_bytes) - word_bytes;
  }

  void write() const {
    store(begin, word);
    store(begin + word_bytes, word);
    store(last, word);
    store(last + word_bytes, word);
  }
  bool is_intact() const {
    return ((load(begin) ^ word) | (load(begin + word_bytes) ^ word) | (load(last) ^ word) |
            (load(last + word_bytes) ^ word)) == 0;
  }

  char* begin;
  char* last;  // of two words, which may overlap the first two
};

[[gnu::always_inline]] inline void write_poison(const Block& block, std::size_t size) {
  if (thorough) {
    std::memset(block.begin, checks::freed_byte, block.room());
  }
  if (Poison::fits(block)) [[likely]] {
    Poison(block).write();
  }
  store(Poison::at_end(block, size), Poison::word);
  write_canary_word(block, (block.room() - size) | free_bit);
}

[[gnu::always_inline]] inline bool is_untouched(const Block& freed) {
  const std::uint64_t slack = told_by_canary(freed) ^ free_bit;
  if (thorough) {
    return slack <= freed.room() && checks::is_filled(freed.begin, freed.begin + freed.room(), checks::freed_byte);
  }
  return (!Poison::fits(freed) || Poison(freed).is_intact()) && slack <= freed.room() &&
         load(Poison::at_end(freed, freed.room() - slack)) == Poison::word;
}

}  // namespace blockyard::heap::guard
