// Holds the events of a journal to limits.
#pragma once

#include <cstdint>
#include <string>

#include "budget/limits.hpp"
#include "journal/json_text.hpp"
#include "journal/progress.hpp"

namespace blockyard::budget {

/// What came of each limit, as JSON: how often it was exceeded and by how much, the first time with its stack, and from
/// which sites all of it came; and what each pattern of `ignored` left out.
///
/// A frame lies between two marks of the thread that marks most of them, and has the events of all threads. What comes
/// before the first mark and after the last is in no frame. Reads the journal twice; memory grows with the live blocks
/// and the stacks. Throws journal::Error.
journal::Json judge(const std::string& path, const Limits& limits, const journal::Progress& progress);

}  // namespace blockyard::budget
