// The bytes of a file as a stream, decompressed when its first bytes say .zst or .gz.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace blockyard::journal {

/// One thread at a time. Throws Error (unreadable, damaged or truncated compression).
class Input {
 public:
  virtual ~Input() = default;
  /// Fills as much of `into` as possible; returns 0 only at the end.
  std::size_t read(std::span<char> into);
  /// The next bytes, at most `size` of them, without consuming them; valid until the next call.
  std::string_view peek(std::size_t size);
  /// From now on a compressed stream that is cut off ends there instead of throwing, and is_cut() says so.
  virtual void accept_cut() {}
  virtual bool is_cut() const { return false; }
  /// Bytes of the file consumed so far, and in all (0 for a pipe).
  virtual std::uint64_t bytes_read() const = 0;
  virtual std::uint64_t bytes_total() const = 0;

 private:
  virtual std::size_t read_on(std::span<char> into) = 0;
  std::string ahead_;  ///< peeked, not yet read
};

/// Throws Error, also for an empty file.
std::unique_ptr<Input> open_input(const std::string& path);

}  // namespace blockyard::journal
