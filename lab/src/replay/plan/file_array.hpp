// An array in a file. The planner keeps a number for each event of a journal of unknown length, and the system need not
// hold them in memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace blockyard::replay {

/// The file has no name once it is open, and is gone when the process is. The kernel writes its pages out and drops
/// them when it needs memory.
class FileArray {
 public:
  /// Makes the file beside `path`. Throws journal::Error.
  explicit FileArray(const std::string& path);
  ~FileArray();
  FileArray(const FileArray&) = delete;
  FileArray& operator=(const FileArray&) = delete;

  std::uint32_t& operator[](std::size_t index) { return numbers_[index]; }
  /// Throws journal::Error when the disk is full.
  void push_back(std::uint32_t value) {
    if (size_ == room_) grow();
    numbers_[size_++] = value;
  }
  [[nodiscard]] std::size_t size() const { return size_; }
  /// Valid until the next push_back(), which may move the numbers.
  [[nodiscard]] std::span<const std::uint32_t> all() const { return {numbers_, size_}; }

 private:
  void grow();

  std::string path_;
  int file_ = -1;
  std::uint32_t* numbers_ = nullptr;
  std::size_t size_ = 0;
  std::size_t room_ = 0;
};

}  // namespace blockyard::replay
