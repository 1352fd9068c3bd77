// Memory for the containers' arrays: from the C library if small, mapped in huge pages if large.
#include <algorithm>
#include <cstdlib>

#include "base/bits.hpp"
#include "base/pages.hpp"
#include "block/watch.hpp"
#include "blockyard/detail/hash_slots.hpp"

namespace blockyard::container {
namespace {

// Arrays are accessed at random, where small pages double the cost of an access, and filled at once, where each small
// page is a fault.
constexpr std::size_t mapped_from = std::size_t{1} << 20;
constexpr std::size_t huge_page = std::size_t{2} << 20;

// The last huge page is used if at least half of it is wanted.
std::size_t huge_bytes(std::size_t bytes) { return base::align_down(bytes + huge_page / 2, huge_page); }

std::size_t mapped_bytes(std::size_t bytes) {
  return std::max(base::align_up(bytes, std::size_t{4096}), huge_bytes(bytes));
}

}  // namespace

void* array_allocate(std::size_t bytes) noexcept {
  if (block::watch_fails_now()) [[unlikely]] {
    return nullptr;
  }
  if (bytes < mapped_from) {
    return std::calloc(1, bytes);
  }
  void* const array = base::reserve_pages(mapped_bytes(bytes), huge_page);
  if (array != nullptr) {
    base::advise_huge_pages(array, huge_bytes(bytes));
  }
  return array;
}

void array_free(void* array, std::size_t bytes) noexcept {
  if (bytes < mapped_from) {
    std::free(array);
  } else {
    base::release_pages(array, mapped_bytes(bytes));
  }
}

}  // namespace blockyard::container
