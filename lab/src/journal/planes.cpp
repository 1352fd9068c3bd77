#include "journal/planes.hpp"

namespace blockyard::journal {

using format::Codec;
using format::PlaneEntry;

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
  const std::size_t before = planes_.size();
  const format::Codec codec = compressor_.append(planes_, bytes);
  directory_.push_back({column, static_cast<std::uint8_t>(plane), static_cast<std::uint8_t>(codec), 0,
                        static_cast<std::uint32_t>(planes_.size() - before)});
}

void PlaneEncoder::append_to(std::string& payload) const {
  for (const auto& entry : directory_) format::put(payload, entry);
  payload += planes_;
}

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
    if (!decompressor_.unpack(plane.bytes, plane_.data(), count)) {
      fail("a plane does not decompress to one byte for each value");
    }
    return {plane_.data(), count};
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
