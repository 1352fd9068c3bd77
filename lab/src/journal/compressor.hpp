// Compresses the planes of a journal; a build without zstd (record/windows) stores them.
#pragma once

#include <future>
#include <string>
#include <string_view>

#include "journal/format.hpp"

struct ZSTD_CCtx_s;
struct ZSTD_DCtx_s;

namespace blockyard::journal {

/// One thread at a time.
class Compressor {
 public:
  /// Throws std::bad_alloc.
  explicit Compressor(int level);
  ~Compressor();
  Compressor(const Compressor&) = delete;
  Compressor& operator=(const Compressor&) = delete;

  /// Appends the bytes to `out`, as the codec says that comes back: compressed where that is smaller.
  format::Codec append(std::string& out, std::string_view bytes);

  /// Whether it is worth a thread of its own.
  static const std::launch launch;

 private:
  [[maybe_unused]] ZSTD_CCtx_s* compressor_ = nullptr;
};

/// One thread at a time.
class Decompressor {
 public:
  /// Throws std::bad_alloc.
  Decompressor();
  ~Decompressor();
  Decompressor(const Decompressor&) = delete;
  Decompressor& operator=(const Decompressor&) = delete;

  /// Whether what was compressed has exactly `count` bytes, which then lie at `into`.
  bool unpack(std::string_view compressed, char* into, std::size_t count);

 private:
  [[maybe_unused]] ZSTD_DCtx_s* decompressor_ = nullptr;
};

}  // namespace blockyard::journal
