// NumPy's file format .npy (version 1.0), written without NumPy, from the description in NumPy's documentation.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "replay/results/atomic_file.hpp"

namespace blockyard::replay {

/// The header of a one-dimensional array of `rows`; `descr` is NumPy's, such as "'<u4'" or a list of fields. Its length
/// is a multiple of 64.
std::string npy_header(const std::string& descr, std::uint64_t rows);

/// Writes an array that is complete to `path`. Throws journal::Error.
template <typename Row>
void write_npy(const std::string& path, const std::string& descr, std::span<const Row> rows) {
  AtomicFile file(path);
  const std::string header = npy_header(descr, rows.size());
  file.write(header.data(), header.size());
  file.write(rows.data(), rows.size_bytes());
  file.commit();
}

}  // namespace blockyard::replay
