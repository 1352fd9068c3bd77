// Memory for tables that are read at random: beyond 2 MiB in huge pages, without which each look-up misses the TLB.
#pragma once

#include <cstddef>
#include <new>

#include "journal/system.hpp"

namespace blockyard::journal {

/// A standard allocator. Throws std::bad_alloc. Beyond 2 MiB it aligns to them and asks for huge pages; a system that
/// has none gives small ones.
template <typename T>
struct LargeTableAllocator {
  using value_type = T;
  static constexpr std::size_t huge_page = std::size_t{1} << 21;

  LargeTableAllocator() = default;
  template <typename Other>
  LargeTableAllocator(const LargeTableAllocator<Other>&) {}

  T* allocate(std::size_t count) {
    if (count > static_cast<std::size_t>(-1) / sizeof(T)) throw std::bad_alloc();
    const std::size_t bytes = count * sizeof(T);
    void* const memory = ::operator new(bytes, alignment_for(bytes));
    if (bytes >= huge_page) system::ask_for_huge_pages(memory, bytes);
    return static_cast<T*>(memory);
  }
  void deallocate(T* memory, std::size_t count) { ::operator delete(memory, alignment_for(count * sizeof(T))); }

  friend bool operator==(LargeTableAllocator, LargeTableAllocator) { return true; }

 private:
  static std::align_val_t alignment_for(std::size_t bytes) {
    return std::align_val_t{bytes >= huge_page ? huge_page : alignof(std::max_align_t)};
  }
};

}  // namespace blockyard::journal
