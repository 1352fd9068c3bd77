// What a program is held to, as `blockyard budget` hands it on.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "journal/json_text.hpp"

namespace blockyard::budget {

enum class Quantity {
  allocations,       ///< reallocations too, as in a journal's facts
  allocated_bytes,   ///< in total
  frees,             ///< reallocations too
  reallocations,     ///<
  live_bytes,        ///< at most at a time
  outliving_blocks,  ///< allocated in a frame and alive at its end
};
enum class Per { frame, second, run };

/// A limit of one quantity. Patterns are those of file names; an empty one fits everything.
struct Limit {
  std::string thread;
  std::string tag;
  std::string site;  ///< a function or the file name of a module, anywhere on the stack
  Quantity what = Quantity::allocations;
  Per per = Per::run;
  std::uint64_t most = 0;
  std::string after_phase;  ///< nothing before this mark is judged; empty: from the beginning
  std::uint64_t after_frames = 0;
  std::uint64_t after_ns = 0;
  std::string forbidden;  ///< what the program itself says must not allocate (blockyard/forbid.h); then no tag is given
};

struct Limits {
  std::vector<Limit> limits;
  std::vector<std::string> ignored;  ///< patterns as Limit::site: what they fit counts nowhere
  bool cut = false;                  ///< the program was stopped within its last frame, which is judged, too
};

/// The most limits that are judged in one pass.
inline constexpr std::size_t most_limits = 64;

/// The names of what must not allocate in a path of tags; mostly none.
std::vector<std::string> forbidden_in(std::string_view path);
/// The path without those levels, which tags of limits don't know.
std::string without_forbidden(std::string_view path);

/// Whether a file name's pattern (*, ?, [a-z]) fits all of the text.
bool fits(const std::string& pattern, const std::string& text);

/// Throws journal::Error where `json` is not what `blockyard budget` writes.
Limits limits_of(const journal::Json& json);

}  // namespace blockyard::budget
