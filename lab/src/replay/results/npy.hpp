// NumPy's file formats, written without NumPy: .npy (format version 1.0) and .npz (an uncompressed zip of them), from
// the descriptions in NumPy's documentation and in PKWARE's APPNOTE 6.3.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

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

/// Writes arrays one after another into one .npz. Not thread-safe. A member is limited to 4 GiB.
class NpzWriter {
 public:
  explicit NpzWriter(AtomicFile& file) : file_(file) {}

  /// Begins the member `name` (without .npy), then its data in pieces, then the next member or finish().
  void begin(const std::string& name, const std::string& descr, std::uint64_t rows);
  void add(const void* bytes, std::size_t count);
  /// Ends the last member and writes the directory.
  void finish();

 private:
  struct Member {
    std::string name;
    std::uint32_t crc = 0;
    std::uint32_t bytes = 0;
    std::uint32_t offset = 0;
  };

  void end_member();

  AtomicFile& file_;
  std::vector<Member> members_;
  bool open_ = false;
};

}  // namespace blockyard::replay
