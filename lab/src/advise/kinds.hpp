// What can be advised.
#pragma once

#include <cstdint>
#include <string_view>

#include "journal/routes.hpp"

namespace blockyard::advise {

/// All but `leave` have the numbers of journal::RouteKind.
enum class What : std::uint8_t { leave = 0, temp = 1, temp_scope, temp_job, pool, rewindable, reserve, keep };

inline constexpr auto& what_names = journal::route_names;
constexpr std::string_view name_of(What what) { return what_names[static_cast<std::size_t>(what)]; }

/// A temp job block may live through so many ends of frames; see by_temp_job_set_frames().
inline constexpr std::uint32_t temp_job_frames = 4;

/// Block allocators give blocks in multiples of this.
constexpr std::uint64_t stride_of(std::uint64_t size) { return size == 0 ? 16 : (size + 15) & ~std::uint64_t{15}; }

}  // namespace blockyard::advise
