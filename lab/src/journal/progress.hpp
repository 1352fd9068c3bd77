// How a long pass over a journal reports its progress.
#pragma once

#include <cstdint>
#include <functional>

#include "journal/reader.hpp"

namespace blockyard::journal {

/// Called from time to time with a fraction from 0 to 1; empty when not wanted.
using Progress = std::function<void(double)>;

inline void report(const Progress& progress, const Source& source) {
  if (!progress || source.bytes_total() == 0) return;
  progress(static_cast<double>(source.bytes_read()) / static_cast<double>(source.bytes_total()));
}

}  // namespace blockyard::journal
