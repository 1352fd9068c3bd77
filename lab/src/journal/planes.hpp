// Columns of numbers as planes of bytes behind a directory: what BLCK, STAK and SYMS payloads consist of.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "journal/compressor.hpp"
#include "journal/format.hpp"

namespace blockyard::journal {

/// Splits columns into planes and compresses each on its own. One thread at a time.
class PlaneEncoder {
 public:
  explicit PlaneEncoder(int compression_level) : compressor_(compression_level) {}

  void begin();
  /// A plane of zeros is left out.
  void put(std::uint8_t column, std::span<const std::uint64_t> values);
  /// A column of bytes, as a single plane.
  void put_bytes(std::uint8_t column, std::string_view bytes);
  /// Entries of the directory.
  std::uint32_t planes() const { return static_cast<std::uint32_t>(directory_.size()); }
  /// The directory and the planes.
  void append_to(std::string& payload) const;

 private:
  void put_plane(std::uint8_t column, unsigned plane, std::string_view bytes);

  Compressor compressor_;
  std::vector<format::PlaneEntry> directory_;
  std::string planes_;
  std::string plane_;
};

/// Reads them back. Throws Error for whatever no writer produces. One thread at a time.
class PlaneDecoder {
 public:
  /// `payload` holds a directory of so many planes at `at`, and must outlive the reading. `where` names the place in
  /// errors.
  void begin(std::string_view payload, std::size_t at, std::uint32_t planes, const std::string& where);
  /// Fills `values` with `count` values of the column. False, and nothing changes, when all its planes were left out.
  bool read(std::uint8_t column, std::uint32_t count, std::vector<std::uint64_t>& values);
  /// The column of `count` bytes; valid until the next call. Bytes of a column that was left out are 0.
  std::string_view read_bytes(std::uint8_t column, std::uint32_t count);

 private:
  struct Plane {
    format::PlaneEntry entry;
    std::string_view bytes;
  };
  [[noreturn]] void fail(const std::string& what) const;
  std::string_view unpack(const Plane& plane, std::uint32_t count);

  std::string where_;
  Decompressor decompressor_;
  std::vector<Plane> planes_;
  std::string plane_;
};

}  // namespace blockyard::journal
