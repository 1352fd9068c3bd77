// The lines of an Input, for forms in which speed matters little.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "journal/input.hpp"

namespace blockyard::journal {

/// One thread at a time. Throws Error for a line beyond 1 MiB.
class LineReader {
 public:
  LineReader(std::unique_ptr<Input> input, std::string path);
  /// The next line without its end, valid until the next call; false at the end.
  bool next(std::string_view& line);
  /// Number of the line that next() gave last, counted from 1.
  std::uint64_t number() const { return number_; }
  const Input& input() const { return *input_; }

 private:
  std::unique_ptr<Input> input_;
  std::string path_;
  std::vector<char> buffer_;
  std::size_t begin_ = 0;
  std::size_t filled_ = 0;
  std::uint64_t number_ = 0;
};

}  // namespace blockyard::journal
