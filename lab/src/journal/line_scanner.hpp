// The lines of an Input and the fields of a line, for every form that is text.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "journal/input.hpp"

namespace blockyard::journal {

/// One thread at a time. A compressed stream that is cut off ends the lines, and is_cut() says so.
class LineScanner {
 public:
  LineScanner(std::unique_ptr<Input> input, std::string path);
  /// The next line without its end, valid until the next call; false at the end. A line's end stands behind it, so that
  /// scanning a field needs no bound. Throws Error for a line beyond 1 MiB.
  bool next(std::string_view& line);
  /// Number of the line that next() gave last, counted from 1.
  std::uint64_t number() const { return number_; }
  /// Whether the line that next() gave last had an end. Only the file's last one may have none: it may be cut off.
  bool is_ended() const { return is_ended_; }
  bool is_cut() const { return at_end_ && input_->is_cut(); }
  const Input& input() const { return *input_; }
  const std::string& path() const { return path_; }
  /// Throws Error with the path, the line's number, what is wrong, and the line's beginning.
  [[noreturn]] void fail(std::string_view line, const std::string& what) const;

 private:
  bool refill();

  std::unique_ptr<Input> input_;
  std::string path_;
  std::vector<char> buffer_;
  std::size_t begin_ = 0;   ///< first byte not yet given
  std::size_t filled_ = 0;  ///< after the last byte read
  bool at_end_ = false;
  bool is_ended_ = true;
  std::uint64_t number_ = 0;
};

/// Takes fields off a line of a LineScanner, from left to right. What is not as expected throws the scanner's Error.
class Fields {
 public:
  Fields(const LineScanner& scanner, std::string_view line) : scanner_(scanner), line_(line), at_(line.data()) {}

  std::string_view line() const { return line_; }
  bool at_end() const { return at_ == end(); }
  /// What is not taken yet.
  std::string_view rest() const { return {at_, static_cast<std::size_t>(end() - at_)}; }
  [[noreturn]] void fail(const std::string& what) const { scanner_.fail(line_, what); }

  /// Takes `text` if it is next.
  bool take(std::string_view text) {
    if (!rest().starts_with(text)) return false;
    at_ += text.size();
    return true;
  }
  void expect(std::string_view text) {
    if (!take(text)) fail("'" + std::string(text) + "' was expected");
  }
  /// At least one blank or tab.
  void skip_blanks(const char* before) {
    if (!is_blank(*at_)) fail(std::string("a blank was expected before ") + before);
    skip_any_blanks();
  }
  void skip_any_blanks() {
    while (is_blank(*at_)) ++at_;
  }
  /// All up to `end`, which is skipped, or up to the line's end.
  std::string_view until(char end) {
    const std::size_t bytes = std::min(rest().find(end), rest().size());
    const std::string_view text = rest().substr(0, bytes);
    at_ += std::min(bytes + 1, rest().size());
    return text;
  }
  bool is_digit() const { return static_cast<unsigned>(*at_ - '0') <= 9; }
  std::uint64_t decimal(const char* what) {
    std::uint64_t value = 0;
    const char* const begin = at_;
    for (unsigned digit; (digit = static_cast<unsigned>(*at_ - '0')) <= 9; ++at_) value = value * 10 + digit;
    if (at_ == begin) fail(std::string(what) + " (a decimal number) was expected");
    constexpr std::ptrdiff_t safe_digits = 19;
    if (at_ - begin > safe_digits && !fits(begin)) fail(std::string(what) + " is beyond 64 bits");
    return value;
  }
  /// With or without 0x.
  std::uint64_t hexadecimal(const char* what) {
    if (*at_ == '0' && (at_[1] == 'x' || at_[1] == 'X')) at_ += 2;
    std::uint64_t value = 0;
    const char* const begin = at_;
    for (std::uint8_t digit; (digit = digits[static_cast<unsigned char>(*at_)]) < 16; ++at_) value = value << 4 | digit;
    if (at_ == begin) fail(std::string(what) + " (a hexadecimal number) was expected");
    constexpr std::ptrdiff_t most_digits = 16;
    if (at_ - begin > most_digits) {
      const char* significant = begin;
      while (*significant == '0') ++significant;
      if (at_ - significant > most_digits) fail(std::string(what) + " is beyond 64 bits");
    }
    return value;
  }
  /// Blanks, then nothing.
  void expect_end(const char* after) {
    skip_any_blanks();
    if (!at_end()) fail(std::string("the end of the line was expected after ") + after);
  }

 private:
  static bool is_blank(char c) { return c == ' ' || c == '\t'; }
  /// Values of hexadecimal digits; 16 is none.
  static constexpr std::array<std::uint8_t, 256> digits = [] {
    std::array<std::uint8_t, 256> values{};
    for (auto& value : values) value = 16;
    for (std::uint8_t i = 0; i < 10; ++i) values[static_cast<std::size_t>('0') + i] = i;
    for (std::uint8_t i = 0; i < 6; ++i) {
      values[static_cast<std::size_t>('a') + i] = static_cast<std::uint8_t>(10 + i);
      values[static_cast<std::size_t>('A') + i] = static_cast<std::uint8_t>(10 + i);
    }
    return values;
  }();
  const char* end() const { return line_.data() + line_.size(); }
  bool fits(const char* begin) const;

  const LineScanner& scanner_;
  std::string_view line_;
  const char* at_;
};

}  // namespace blockyard::journal
