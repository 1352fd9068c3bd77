// An array that grows without moving: what the planner keeps for each event and block of a journal of unknown length.
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <cstdlib>
#include <memory>
#include <new>
#include <vector>

namespace blockyard::replay {

/// Elements are trivially copyable. 2 MiB pieces, huge pages
/// where the kernel gives them.
template <typename T>
class GrowingArray {
 public:
  T& operator[](std::size_t index) { return pieces_[index / per_piece].get()[index % per_piece]; }
  const T& operator[](std::size_t index) const { return pieces_[index / per_piece].get()[index % per_piece]; }

  void push_back(const T& value) {
    if (size_ == pieces_.size() * per_piece) grow();
    (*this)[size_++] = value;
  }

  [[nodiscard]] std::size_t size() const { return size_; }

  /// Calls `visit(const T* first, std::size_t count)` for each stretch of contiguous elements, in order.
  template <typename Visit>
  void for_each_piece(Visit visit) const {
    for (std::size_t piece = 0, left = size_; left != 0; ++piece) {
      const std::size_t count = left < per_piece ? left : per_piece;
      visit(static_cast<const T*>(pieces_[piece].get()), count);
      left -= count;
    }
  }

 private:
  static constexpr std::size_t piece_bytes = std::size_t{2} << 20;
  static constexpr std::size_t per_piece = piece_bytes / sizeof(T);

  struct Free {
    void operator()(T* piece) const { std::free(piece); }
  };

  void grow() {
    void* piece = std::aligned_alloc(piece_bytes, piece_bytes);
    if (piece == nullptr) throw std::bad_alloc();
    madvise(piece, piece_bytes, MADV_HUGEPAGE);
    pieces_.emplace_back(static_cast<T*>(piece));
  }

  std::vector<std::unique_ptr<T, Free>> pieces_;
  std::size_t size_ = 0;
};

}  // namespace blockyard::replay
