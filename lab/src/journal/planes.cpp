#include "journal/planes.hpp"

#include <zstd.h>

#include <new>

namespace blockyard::journal {

using format::Codec;
using format::PlaneEntry;

PlaneEncoder::PlaneEncoder(int compression_level) : compressor_(ZSTD_createCCtx()) {
  if (compressor_ == nullptr) throw std::bad_alloc();
  ZSTD_CCtx_setParameter(compressor_, ZSTD_c_compressionLevel, compression_level);
}

PlaneEncoder::~PlaneEncoder() { ZSTD_freeCCtx(compressor_); }

void PlaneEncoder::begin() {
  directory_.clear();
  planes_.clear();
}

void PlaneEncoder::put(std::uint8_t column, std::span<const std::uint64_t> values) {
  std::uint64_t used = 0;
  for (const std::uint64_t value : values) used |= value;
  plane_.resize(values.size());
  for (unsigned plane = 0; plane < 8; ++plane) {
    if ((used >> (8 * plane) & 0xFF) == 0) continue;
    for (std::size_t i = 0; i < values.size(); ++i) plane_[i] = static_cast<char>(values[i] >> (8 * plane));
    put_plane(column, plane, plane_);
  }
}

void PlaneEncoder::put_bytes(std::uint8_t column, std::string_view bytes) {
  if (!bytes.empty()) put_plane(column, 0, bytes);
}

void PlaneEncoder::put_plane(std::uint8_t column, unsigned plane, std::string_view bytes) {
  const std::size_t at = planes_.size();
  planes_.resize(at + ZSTD_compressBound(bytes.size()));
  const std::size_t compressed =
      ZSTD_compress2(compressor_, planes_.data() + at, planes_.size() - at, bytes.data(), bytes.size());
  const bool smaller = ZSTD_isError(compressed) == 0 && compressed < bytes.size();
  const std::size_t size = smaller ? compressed : bytes.size();
  planes_.resize(at + size);
  if (!smaller) planes_.replace(at, size, bytes);
  directory_.push_back({column, static_cast<std::uint8_t>(plane),
                        static_cast<std::uint8_t>(smaller ? Codec::zstd : Codec::stored), 0,
                        static_cast<std::uint32_t>(size)});
}

void PlaneEncoder::append_to(std::string& payload) const {
  for (const auto& entry : directory_) format::put(payload, entry);
  payload += planes_;
}

PlaneDecoder::PlaneDecoder() : decompressor_(ZSTD_createDCtx()) {
  if (decompressor_ == nullptr) throw std::bad_alloc();
}

PlaneDecoder::~PlaneDecoder() { ZSTD_freeDCtx(decompressor_); }

void PlaneDecoder::fail(const std::string& what) const { throw Error(where_ + ": " + what); }

void PlaneDecoder::begin(std::string_view payload, std::size_t at, std::uint32_t planes, const std::string& where) {
  where_ = where;
  planes_.clear();
  if (planes > 8 * 255 || payload.size() < at || payload.size() - at < planes * sizeof(PlaneEntry)) {
    fail("the plane directory does not fit into its section");
  }
  std::size_t bytes_at = at + planes * sizeof(PlaneEntry);
  for (std::uint32_t i = 0; i < planes; ++i) {
    const auto entry = format::get<PlaneEntry>(payload, at + i * sizeof(PlaneEntry));
    if (payload.size() - bytes_at < entry.bytes) fail("a plane is longer than the section that holds it");
    planes_.push_back({entry, payload.substr(bytes_at, entry.bytes)});
    bytes_at += entry.bytes;
  }
}

std::string_view PlaneDecoder::unpack(const Plane& plane, std::uint32_t count) {
  const auto codec = static_cast<Codec>(plane.entry.codec);
  if (codec == Codec::zstd) {
    if (plane_.size() < count) plane_.resize(count);
    const std::size_t size =
        ZSTD_decompressDCtx(decompressor_, plane_.data(), count, plane.bytes.data(), plane.bytes.size());
    if (ZSTD_isError(size) != 0 || size != count) fail("a plane does not decompress to one byte for each value");
    return {plane_.data(), size};
  }
  if (codec != Codec::stored || plane.bytes.size() != count) {
    fail("a plane is stored in an unknown way; a newer blockyard may read it");
  }
  return plane.bytes;
}

bool PlaneDecoder::read(std::uint8_t column, std::uint32_t count, std::vector<std::uint64_t>& values) {
  bool present = false;
  for (const Plane& plane : planes_) {
    if (plane.entry.column != column) continue;
    if (plane.entry.plane > 7) fail("a column has a ninth byte plane");
    const std::string_view bytes = unpack(plane, count);
    if (!present) values.assign(count, 0);
    present = true;
    const unsigned shift = 8U * plane.entry.plane;
    for (std::uint32_t i = 0; i < count; ++i) {
      values[i] |= static_cast<std::uint64_t>(static_cast<unsigned char>(bytes[i])) << shift;
    }
  }
  return present;
}

std::string_view PlaneDecoder::read_bytes(std::uint8_t column, std::uint32_t count) {
  for (const Plane& plane : planes_) {
    if (plane.entry.column == column) return unpack(plane, count);
  }
  plane_.assign(count, '\0');
  return {plane_.data(), count};
}

}  // namespace blockyard::journal
