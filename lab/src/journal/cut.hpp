// Cuts a stretch out of a journal. The blocks alive at its start become its preamble.
#pragma once

#include <cstdint>
#include <string>

#include "journal/convert.hpp"
#include "journal/progress.hpp"

namespace blockyard::journal {

struct CutOptions {
  std::uint64_t from_ns = 0;
  std::uint64_t to_ns = ~std::uint64_t{0};  ///< exclusive; the default: to the end
  bool overwrite = false;
};

/// Streams in one pass; memory grows with the live blocks only. A journal that was cut short is read as far as it is
/// whole, and a note says so. Of a damaged one, what comes before the damage is written, and an Error says so. Throws
/// Error; otherwise `output` appears only on success.
Outcome cut(const std::string& input, const std::string& output, const CutOptions& options, const Progress& progress);

}  // namespace blockyard::journal
