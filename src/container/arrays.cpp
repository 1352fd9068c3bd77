// Memory for the containers' arrays: from the C library while small, mapped in huge pages when large.
#include <cstdlib>

#include "base/bits.hpp"
#include "base/pages.hpp"
#include "block/watch.hpp"
#include "blockyard/hash_slots.hpp"

namespace blockyard::container {
namespace {

// A slot array is accessed at random: beyond the reach of the translation caches small pages double the cost of an
// access.
constexpr std::size_t mapped_from = std::size_t{1} << 20;
constexpr std::size_t huge_page = std::size_t{2} << 20;

std::size_t mapped_bytes(std::size_t bytes) { return base::align_up(bytes, std::size_t{4096}); }

}  // namespace

void* array_allocate(std::size_t bytes) noexcept {
  if (block::watch_fails_now()) [[unlikely]] {
    return nullptr;
  }
  if (bytes < mapped_from) {
    return std::calloc(1, bytes);
  }
  const std::size_t mapped = mapped_bytes(bytes);
  void* const array = base::reserve_pages(mapped, mapped >= huge_page ? huge_page : 4096);
  if (array != nullptr && mapped >= huge_page) {
    base::advise_huge_pages(array, base::align_down(mapped, huge_page));
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
