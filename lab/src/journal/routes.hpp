// Routes: which blocks of a journal a replay gives to which of the library's allocators. `advise` writes them, and the
// planner reads them.
//
// A .byr file is little-endian: a head of 40 bytes, the routes, then the blocks in the order of their events.
//
//   head    8 bytes "BYROUTE\n"; u32 version, 1; u32 routes; u64 blocks; u64 events of the journal; u64 XXH3 of what
//           follows
//   Route   24 bytes each
//   Block   8 bytes each
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "journal/event.hpp"

namespace blockyard::journal {

/// Where a block goes. The numbers are the file's: never renumber.
enum class RouteKind : std::uint8_t {
  temp = 1,
  temp_scope = 2,
  temp_job = 3,
  block_pool = 4,
  rewindable = 5,
  reserve = 6,
  keep = 7,
};
inline constexpr std::uint8_t last_route_kind = 7;
/// By number; 0: the block stays where it is.
inline constexpr std::array<std::string_view, last_route_kind + 1> route_names{
    "leave", "temp", "temp_scope", "temp_job", "pool", "rewindable", "reserve", "keep"};

struct Route {
  RouteKind kind = RouteKind::temp;
  std::uint8_t alignment_log2 = 4;  ///< of its blocks, at most 31
  std::uint16_t zero = 0;
  std::uint32_t group = 0;   ///< the advice that it belongs to
  std::uint64_t bytes = 0;   ///< pool: of a block; reserve: N; temp, temp_scope, rewindable: of the region; else 0
  std::uint64_t unused = 0;  ///< 0
  bool operator==(const Route&) const = default;
};
static_assert(sizeof(Route) == 24);

struct RoutedBlock {
  std::uint32_t event = 0;  ///< number in the journal, marks and preamble included, of the event that gives the block
  std::uint16_t route = 0;
  std::uint16_t grows = 0;  ///< 1: replaces a smaller block, which the next event of its thread, listed too, frees
  bool operator==(const RoutedBlock&) const = default;
};
static_assert(sizeof(RoutedBlock) == 8);

struct Routes {
  std::uint64_t events = 0;  ///< of the journal
  std::vector<Route> routes;
  std::vector<RoutedBlock> blocks;  ///< ascending by event, each once
};
inline constexpr std::uint32_t most_routes = 1U << 16;

/// The invariants: known kinds, possible alignments, a pool has a size, blocks ascend and name routes and events that
/// exist. O(blocks). Throws Error that names the first violation.
void check(const Routes& routes);

/// Writes `path`, over what is there. Throws Error, also for what check() refuses.
void write_routes(const Routes& routes, const std::string& path);

/// Reads and checks a whole file. Throws Error whose sentence begins with `path`.
Routes read_routes(const std::string& path);

/// The same, and refuses routes of a journal that does not have `events` events.
Routes read_routes(const std::string& path, std::uint64_t events);

}  // namespace blockyard::journal
