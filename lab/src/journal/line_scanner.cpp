#include "journal/line_scanner.hpp"

#include <algorithm>
#include <charconv>
#include <cstring>

#include "journal/event.hpp"

namespace blockyard::journal {

namespace {
constexpr std::size_t longest_line_bytes = 1U << 20;
constexpr std::size_t shown_bytes = 60;  // of a bad line, in a message
}  // namespace

LineScanner::LineScanner(std::unique_ptr<Input> input, std::string path)
    : input_(std::move(input)), path_(std::move(path)), buffer_(longest_line_bytes + 1) {
  input_->accept_cut();
}

// Moves the rest to the front and reads on, as much as there is room. False when nothing came.
bool LineScanner::refill() {
  if (begin_ != 0) {
    std::memmove(buffer_.data(), buffer_.data() + begin_, filled_ - begin_);
    filled_ -= begin_;
    begin_ = 0;
  }
  if (filled_ == longest_line_bytes) {
    throw Error(path_ + ", line " + std::to_string(number_ + 1) +
                ": the line is longer than 1 MiB; this is no journal");
  }
  const std::size_t got = at_end_ ? 0 : input_->read({buffer_.data() + filled_, longest_line_bytes - filled_});
  at_end_ = got == 0;
  filled_ += got;
  return !at_end_;
}

bool LineScanner::next(std::string_view& line) {
  std::size_t searched = 0;
  const char* end = nullptr;
  for (;;) {
    const char* const from = buffer_.data() + begin_;
    end = static_cast<const char*>(std::memchr(from + searched, '\n', filled_ - begin_ - searched));
    if (end != nullptr) break;
    searched = filled_ - begin_;
    if (refill()) continue;
    if (searched == 0) return false;
    is_ended_ = false;
    buffer_[filled_++] = '\n';  // there is a byte for it
  }
  line = {buffer_.data() + begin_, static_cast<std::size_t>(end - buffer_.data()) - begin_};
  begin_ += line.size() + 1;
  ++number_;
  if (line.ends_with('\r')) line.remove_suffix(1);
  return true;
}

void LineScanner::fail(std::string_view line, const std::string& what) const {
  std::string shown(line.substr(0, shown_bytes));
  std::replace_if(
      shown.begin(), shown.end(), [](char c) { return c < ' ' || c > '~'; }, '?');
  throw Error(path_ + ", line " + std::to_string(number_) + ": " + what + ": \"" + shown + "\"");
}

bool Fields::fits(const char* begin) const {
  std::uint64_t value = 0;
  return std::from_chars(begin, at_, value).ec == std::errc();
}

}  // namespace blockyard::journal
