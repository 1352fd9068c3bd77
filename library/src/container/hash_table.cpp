// The table that all hash maps over near links share, and memory for tables: static blocks if small, from the C library
// if larger, mapped in huge pages if large.
#include <algorithm>
#include <cstring>

#include "base/bits.hpp"
#include "base/pages.hpp"
#include "block/watch.hpp"
#include "blockyard/detail/hash_table.hpp"
#include "blockyard/static_block_allocator.hpp"

namespace blockyard::container {
namespace {

// Arrays are accessed at random, where small pages double the cost of an access, and filled at once, where each small
// page is a fault.
constexpr std::size_t mapped_from = std::size_t{1} << 20;
constexpr std::size_t huge_page = std::size_t{2} << 20;
constexpr std::size_t cache_line = 64;

// The last huge page is used if at least half of it is wanted.
std::size_t huge_bytes(std::size_t bytes) { return base::align_down(bytes + huge_page / 2, huge_page); }

std::size_t mapped_bytes(std::size_t bytes) { return std::max(bytes, huge_bytes(bytes)); }

// Blocks of a stride that is a multiple of their alignment are aligned to it.
std::size_t stride_of(std::size_t bytes) { return base::align_up(bytes, bytes < cache_line ? 16 : cache_line); }

}  // namespace

void* array_allocate(std::size_t bytes) noexcept {
  if (block::watch_fails_now()) [[unlikely]] {
    return nullptr;
  }
  if (bytes >= mapped_from) {
    void* const array = base::reserve_pages(mapped_bytes(bytes), huge_page);
    if (array != nullptr) {
      base::advise_huge_pages(array, huge_bytes(bytes));
    }
    return array;
  }
  void* array = nullptr;
  if (bytes <= block::small_stride) {
    array = block::by_static_block_allocate(stride_of(bytes));
  } else {
    array = base::c_allocate(cache_line, base::align_up(bytes, cache_line));
  }
  return array == nullptr ? nullptr : std::memset(array, 0, bytes);
}

void array_free(void* array, std::size_t bytes) noexcept {
  if (bytes >= mapped_from) {
    base::release_pages(array, mapped_bytes(bytes));
  } else if (bytes <= block::small_stride) {
    block::by_static_block_give(array, stride_of(bytes));
  } else {
    base::c_free(array);
  }
}

template class HashTable<NearLink<void>>;

}  // namespace blockyard::container
