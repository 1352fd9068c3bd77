// Sites as JSON, sorted and filtered.
#pragma once

#include <cstdint>
#include <string>

#include "journal/json_text.hpp"
#include "sites/analysis.hpp"

namespace blockyard::sites {

/// What comes first: the highest of this. `same_frame` and `shared` count blocks that were freed so.
enum class Sort { allocations, bytes, frame, worst_frame, peak, end, same_frame, shared };

struct Listing {
  Sort sort = Sort::allocations;
  std::uint64_t limit = 0;  ///< 0 is no limit
  std::string match;        ///< a regular expression for function, file, module or tag; empty is all
};

/// One object: docs/guide/sites.md shows it. Throws journal::Error for a `match` that is no regular expression.
journal::Json sites_json(const Sites& sites, By by, const Listing& listing);

}  // namespace blockyard::sites
