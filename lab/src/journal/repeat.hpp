// Writes a journal several times over: makes a long journal out of a real one.
#pragma once

#include <cstdint>
#include <string>

#include "journal/convert.hpp"
#include "journal/progress.hpp"

namespace blockyard::journal {

struct RepeatOptions {
  std::uint64_t times = 1;  ///< repetitions in all
  bool overwrite = false;
};

/// A seam joins two repetitions, as when a game leaves one level and loads the next. The blocks that are still alive
/// are freed in the order of their allocation, each on its allocating thread; then the journal's preamble is allocated
/// again. A microsecond lies between two of these events. Blocks get new ids, times continue. The first repetition
/// keeps its preamble, the last one its end. Reads the input as often as it is repeated; memory grows with the live
/// blocks only. Throws Error; `output` appears only on success.
Outcome repeat(const std::string& input, const std::string& output, const RepeatOptions& options,
               const Progress& progress);

}  // namespace blockyard::journal
