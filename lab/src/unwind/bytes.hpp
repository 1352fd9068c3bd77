// Reads DWARF's encodings from a bounded stretch of memory.
#pragma once

#include <cstdint>
#include <cstring>

namespace blockyard::unwind {

/// A cursor over [at, end). A read beyond the end gives 0 and makes failed() true for good. Owns nothing.
class Bytes {
 public:
  Bytes(const std::uint8_t* at, const std::uint8_t* end) : at_(at), end_(end) {}

  const std::uint8_t* at() const { return at_; }
  const std::uint8_t* end() const { return end_; }
  bool failed() const { return failed_; }
  bool is_at_end() const { return failed_ || at_ >= end_; }
  std::uint64_t left() const { return static_cast<std::uint64_t>(end_ - at_); }

  void skip(std::uint64_t count) {
    if (count > left()) {
      failed_ = true;
    } else {
      at_ += count;
    }
  }
  /// Moves by `offset`, which may be negative; `begin` is the least address allowed.
  void jump(std::int64_t offset, const std::uint8_t* begin) {
    if (offset < begin - at_ || offset > end_ - at_) {
      failed_ = true;
    } else {
      at_ += offset;
    }
  }

  template <typename Number>
  Number read() {
    Number value{};
    if (left() < sizeof value) {
      failed_ = true;
      return value;
    }
    std::memcpy(&value, at_, sizeof value);  // NOLINT(clang-analyzer-core.NonNullParamChecker): left() is 0 for null
    at_ += sizeof value;
    return value;
  }

  std::uint64_t uleb() {
    std::uint64_t value = 0;
    for (unsigned shift = 0;; shift += 7) {
      const auto byte = read<std::uint8_t>();
      if (shift < 64) value |= static_cast<std::uint64_t>(byte & 0x7f) << shift;
      if ((byte & 0x80) == 0 || failed_) return value;
    }
  }

  std::int64_t sleb() {
    std::uint64_t value = 0;
    for (unsigned shift = 0;;) {
      const auto byte = read<std::uint8_t>();
      if (shift < 64) value |= static_cast<std::uint64_t>(byte & 0x7f) << shift;
      shift += 7;
      if ((byte & 0x80) != 0 && !failed_) continue;
      if (shift < 64 && (byte & 0x40) != 0) value |= ~std::uint64_t{0} << shift;
      return static_cast<std::int64_t>(value);
    }
  }

  /// A pointer in one of .eh_frame's encodings (LSB, "DWARF Exception Header Encoding"). `data` is what "relative to
  /// data" means. Indirect and aligned pointers fail: only personalities use them, which are skipped by skip_pointer().
  std::uint64_t pointer(std::uint8_t encoding, std::uint64_t data) {
    const auto here = reinterpret_cast<std::uint64_t>(at_);
    const std::uint64_t value = raw_pointer(encoding);
    switch (encoding & 0xf0) {
      case 0x00:
        return value;
      case 0x10:
        return here + value;
      case 0x30:
        return data + value;
      default:
        failed_ = true;
        return 0;
    }
  }
  void skip_pointer(std::uint8_t encoding) { static_cast<void>(raw_pointer(encoding)); }

 private:
  std::uint64_t raw_pointer(std::uint8_t encoding) {
    switch (encoding & 0x0f) {
      case 0x00:
      case 0x04:
      case 0x0c:
        return read<std::uint64_t>();
      case 0x01:
        return uleb();
      case 0x02:
        return read<std::uint16_t>();
      case 0x03:
        return read<std::uint32_t>();
      case 0x09:
        return static_cast<std::uint64_t>(sleb());
      case 0x0a:
        return static_cast<std::uint64_t>(static_cast<std::int64_t>(read<std::int16_t>()));
      case 0x0b:
        return static_cast<std::uint64_t>(static_cast<std::int64_t>(read<std::int32_t>()));
      default:
        failed_ = true;
        return 0;
    }
  }

  const std::uint8_t* at_;
  const std::uint8_t* end_;
  bool failed_ = false;
};

}  // namespace blockyard::unwind
