#include "journal/line_reader.hpp"

#include <cstring>

#include "journal/event.hpp"

namespace blockyard::journal {

namespace {
constexpr std::size_t longest_line_bytes = 1U << 20;
}

LineReader::LineReader(std::unique_ptr<Input> input, std::string path)
    : input_(std::move(input)), path_(std::move(path)), buffer_(longest_line_bytes) {}

bool LineReader::next(std::string_view& line) {
  std::size_t searched = 0;
  for (;;) {
    const char* const from = buffer_.data() + begin_;
    const auto* const end = static_cast<const char*>(std::memchr(from + searched, '\n', filled_ - begin_ - searched));
    if (end != nullptr) {
      line = {from, static_cast<std::size_t>(end - from)};
      begin_ += line.size() + 1;
      break;
    }
    searched = filled_ - begin_;
    if (begin_ != 0) {
      std::memmove(buffer_.data(), from, searched);
      begin_ = 0;
      filled_ = searched;
    }
    if (filled_ == buffer_.size()) {
      throw Error(path_ + ", line " + std::to_string(number_ + 1) + ": the line is longer than 1 MiB");
    }
    const std::size_t got = input_->read({buffer_.data() + filled_, buffer_.size() - filled_});
    filled_ += got;
    if (got != 0) continue;
    if (searched == 0) return false;
    line = {buffer_.data(), searched};
    begin_ = filled_;
    break;
  }
  ++number_;
  if (line.ends_with('\r')) line.remove_suffix(1);
  return true;
}

}  // namespace blockyard::journal
