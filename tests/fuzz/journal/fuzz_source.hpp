// What the journal fuzzers share: input from memory, and a walk that must end well or in one sentence.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>

#include "journal/input.hpp"
#include "journal/reader.hpp"
#include "journal/walker.hpp"

namespace blockyard::journal::fuzz {

class MemoryInput final : public Input {
 public:
  explicit MemoryInput(std::string_view bytes) : bytes_(bytes) {}
  std::uint64_t bytes_read() const override { return at_; }
  std::uint64_t bytes_total() const override { return bytes_.size(); }

 private:
  std::size_t read_on(std::span<char> into) override {
    const std::size_t bytes = std::min(into.size(), bytes_.size() - at_);
    if (bytes != 0) std::memcpy(into.data(), bytes_.data() + at_, bytes);
    at_ += bytes;
    return bytes;
  }
  std::string_view bytes_;
  std::size_t at_ = 0;
};

/// A file in memory, for readers that want a path.
class MemoryFile {
 public:
  explicit MemoryFile(std::string_view bytes) : file_(::memfd_create("journal", 0)) {
    if (file_ < 0 || ::write(file_, bytes.data(), bytes.size()) != static_cast<ssize_t>(bytes.size())) std::abort();
  }
  ~MemoryFile() { ::close(file_); }
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;
  std::string path() const { return "/proc/self/fd/" + std::to_string(file_); }

 private:
  int file_;
};

/// Reads everything and looks at every field. Whether the Walker may object is the caller's to say: a .byj can hold
/// frees of nothing, while the readers of other forms resolve their pointers and must never deliver any.
inline void walk(Source& source, bool must_be_sound) {
  Walker walker;
  for (auto events = source.next(); !events.empty(); events = source.next()) {
    Header header = source.header();
    if (must_be_sound) header.preamble_events = 0;  // a `# preamble` line may claim anything; `check` objects
    for (const Event& event : events) {
      try {
        walker.add(event, header, source.stacks());
      } catch (const Error&) {
        if (must_be_sound) std::abort();
        return;
      }
    }
  }
  try {
    source.stacks().check();
  } catch (const Error&) {
    std::abort();  // whatever the bytes are, a reader hands out sound tables
  }
  for (const auto& note : source.notes()) {
    if (note.empty()) std::abort();
  }
}

/// Runs `body`; an Error is a fine end when it says something.
template <typename Body>
void expect_sentence(Body body) {
  try {
    body();
  } catch (const Error& error) {
    if (std::string_view(error.what()).empty()) std::abort();
  }
}

}  // namespace blockyard::journal::fuzz
