// A journal several times over: a long one for trying what long ones need, made of a real one.
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

/// Between two repetitions lies a seam, as where a game leaves one level and loads the next: the blocks that are still
/// alive are freed in the order in which they came, each on the thread that it came from, and the journal's preamble is
/// allocated anew; a microsecond lies between two of these events. Blocks get fresh ids, times go on. The first
/// repetition keeps its preamble, the last one its end. Reads the input so many times; memory grows with the live
/// blocks only. Throws Error; `output` appears only when all went well.
Outcome repeat(const std::string& input, const std::string& output, const RepeatOptions& options,
               const Progress& progress);

}  // namespace blockyard::journal
