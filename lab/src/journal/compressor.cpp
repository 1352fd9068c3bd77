#include "journal/compressor.hpp"

#include <zstd.h>

#include <new>

namespace blockyard::journal {

using format::Codec;

const std::launch Compressor::launch = std::launch::async | std::launch::deferred;

Compressor::Compressor(int level) : compressor_(ZSTD_createCCtx()) {
  if (compressor_ == nullptr) throw std::bad_alloc();
  ZSTD_CCtx_setParameter(compressor_, ZSTD_c_compressionLevel, level);
}

Compressor::~Compressor() { ZSTD_freeCCtx(compressor_); }

Codec Compressor::append(std::string& out, std::string_view bytes) {
  const std::size_t at = out.size();
  out.resize(at + ZSTD_compressBound(bytes.size()));
  const std::size_t compressed =
      ZSTD_compress2(compressor_, out.data() + at, out.size() - at, bytes.data(), bytes.size());
  const bool smaller = ZSTD_isError(compressed) == 0 && compressed < bytes.size();
  out.resize(at + (smaller ? compressed : bytes.size()));
  if (!smaller) out.replace(at, bytes.size(), bytes);
  return smaller ? Codec::zstd : Codec::stored;
}

Decompressor::Decompressor() : decompressor_(ZSTD_createDCtx()) {
  if (decompressor_ == nullptr) throw std::bad_alloc();
}

Decompressor::~Decompressor() { ZSTD_freeDCtx(decompressor_); }

bool Decompressor::unpack(std::string_view compressed, char* into, std::size_t count) {
  const std::size_t size = ZSTD_decompressDCtx(decompressor_, into, count, compressed.data(), compressed.size());
  return ZSTD_isError(size) == 0 && size == count;
}

}  // namespace blockyard::journal
