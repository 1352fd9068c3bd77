// An array in a file that grows without moving. The planner keeps something for each event of a journal of unknown
// length, and the system need not hold it in memory.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

namespace blockyard::replay {

/// A file whose pages are mapped piece by piece; the kernel writes them out and drops them when it needs memory. The
/// file has no name once it is open, and is gone when the process is.
class PagedFile {
 public:
  static constexpr std::size_t piece_bytes = std::size_t{4} << 20;

  /// Makes the file beside `path`. Throws journal::Error.
  explicit PagedFile(const std::string& path);
  ~PagedFile();
  PagedFile(const PagedFile&) = delete;
  PagedFile& operator=(const PagedFile&) = delete;

  /// Maps `piece_bytes` more of zeros. Throws journal::Error when the disk has no room for them.
  void* add_piece();

 private:
  std::string path_;
  int file_ = -1;
  std::vector<void*> pieces_;
};

/// Elements are trivially copyable.
template <typename T>
class FileArray {
 public:
  explicit FileArray(const std::string& path) : file_(path) {}

  T& operator[](std::size_t index) { return pieces_[index / per_piece][index % per_piece]; }
  const T& operator[](std::size_t index) const { return pieces_[index / per_piece][index % per_piece]; }

  /// Throws journal::Error when the disk is full.
  void push_back(const T& value) {
    if (size_ == pieces_.size() * per_piece) pieces_.push_back(static_cast<T*>(file_.add_piece()));
    (*this)[size_++] = value;
  }

  [[nodiscard]] std::size_t size() const { return size_; }

  /// Calls `visit(const T* first, std::size_t count)` for each stretch of contiguous elements, in order.
  template <typename Visit>
  void for_each_piece(Visit visit) const {
    for (std::size_t piece = 0, left = size_; left != 0; ++piece) {
      const std::size_t count = left < per_piece ? left : per_piece;
      visit(static_cast<const T*>(pieces_[piece]), count);
      left -= count;
    }
  }

 private:
  static constexpr std::size_t per_piece = PagedFile::piece_bytes / sizeof(T);

  PagedFile file_;
  std::vector<T*> pieces_;
  std::size_t size_ = 0;
};

}  // namespace blockyard::replay
