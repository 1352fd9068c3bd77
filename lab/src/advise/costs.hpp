// What allocation is estimated to cost before a replay measures it. Only the ranking and what is left out as too little
// depend on these figures; the report says that they are estimates.
#pragma once

#include <cstdint>

namespace blockyard::advise::cost {

/// Nanoseconds of a malloc and its free. Up to 1 KiB: what perf counts for a pair on glibc in running programs (25 to
/// 37 in Perl, Python and SQLite). Above: what replays show for the size classes of the method, rounded.
constexpr double pair(std::uint64_t size) {
  constexpr std::uint64_t kib = 1024;
  if (size <= kib) return 30;
  if (size <= 32 * kib) return 60;
  if (size <= 128 * kib) return 200;
  return 1000;
}

/// Nanoseconds of a realloc that moves: a pair, and 10 bytes copied per nanosecond.
constexpr double move(std::uint64_t old_size) { return pair(old_size) + static_cast<double>(old_size) / 10; }

/// Nanoseconds of a block of each kind: allocation and free.
inline constexpr double temp = 4;
inline constexpr double temp_scope = 5;
inline constexpr double temp_job = 10;
inline constexpr double pool = 8;
inline constexpr double rewindable = 5;
inline constexpr double keep = 1;

/// Memory that is used again at once is in the cache; memory that a frame uses once is not. Blocks of up to 2,000 bytes
/// as temp until the frame's end took 31 ns each, written once, of which 4 are the call: 27 ns per KiB. A region this
/// large no longer stays in a core's own cache.
inline constexpr std::uint64_t cached_bytes = std::uint64_t{256} << 10;
inline constexpr double cold_kib = 27;
constexpr double touch(std::uint64_t region, std::uint64_t bytes) {
  return region <= cached_bytes ? 0 : cold_kib * static_cast<double>(bytes) / 1024;
}

}  // namespace blockyard::advise::cost
