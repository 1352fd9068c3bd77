// How a long pass over a journal tells how far it is.
#pragma once

#include <cstdint>
#include <functional>

#include "journal/reader.hpp"

namespace blockyard::journal {

/// Called now and then with a fraction from 0 to 1; empty when nobody asked.
using Progress = std::function<void(double)>;

inline void report(const Progress& progress, const Source& source) {
  if (!progress || source.bytes_total() == 0) return;
  progress(static_cast<double>(source.bytes_read()) / static_cast<double>(source.bytes_total()));
}

}  // namespace blockyard::journal
