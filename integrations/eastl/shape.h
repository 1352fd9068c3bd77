// The shape of what EASTL asks of an allocator, written from its documentation: what integrations/eastl is compiled
// against here, since EASTL is not packaged. A program has EASTL's containers instead.
#pragma once

#include <cstddef>

/// A container that grows, as eastl::vector<T, Allocator> uses its allocator.
template <class T, class Allocator>
class ShapeVector {
 public:
  explicit ShapeVector(const char* name) : allocator_(name) {}
  ~ShapeVector() { allocator_.deallocate(begin_, room_ * sizeof(T)); }
  ShapeVector(const ShapeVector&) = delete;
  ShapeVector& operator=(const ShapeVector&) = delete;
  void push_back(const T& value) {
    if (size_ == room_) grow();
    begin_[size_++] = value;
  }
  T& operator[](std::size_t index) { return begin_[index]; }

 private:
  void grow() {
    const std::size_t room = room_ == 0 ? 1 : 2 * room_;
    void* const given = alignof(T) > 16 ? allocator_.allocate(room * sizeof(T), alignof(T), 0, 0)
                                        : allocator_.allocate(room * sizeof(T), 0);
    T* const begin = static_cast<T*>(given);
    for (std::size_t i = 0; i < size_; ++i) begin[i] = begin_[i];
    allocator_.deallocate(begin_, room_ * sizeof(T));
    begin_ = begin;
    room_ = room;
  }

  Allocator allocator_;
  T* begin_ = nullptr;
  std::size_t size_ = 0;
  std::size_t room_ = 0;
};
