#include "heap/huge_chunks.hpp"

#include <array>
#include <atomic>
#include <bit>
#include <cstddef>

#include "base/pages.hpp"
#include "heap/atomic.hpp"
#include "heap/bound.hpp"
#include "heap/region.hpp"
#include "heap/settings.hpp"

namespace blockyard::heap {

namespace {

constexpr auto chunk = static_cast<std::uint32_t>(pages_per_chunk);

// A bit for each chunk that asks for small pages though the region asks for huge ones. Two threads that give parts of
// one chunk back at once may leave it with the wrong advice: no harm but a chunk on small pages.
constinit std::array<Atomic<std::uint64_t>, largest_region / chunk_bytes / 64> small_chunks{};
constinit Atomic<std::uint32_t> small_count{0};

char* address_of(std::uint32_t index) { return region.page_address(std::size_t{index} * chunk); }

void keep_small(std::uint32_t index) {
  const std::uint64_t bit = std::uint64_t{1} << (index % 64);
  if ((small_chunks[index / 64].load(std::memory_order_relaxed) & bit) != 0) {
    return;
  }
  if (small_count.fetch_add(1, std::memory_order_relaxed) >= most_small_chunks) {
    small_count.fetch_sub(1, std::memory_order_relaxed);
    return;
  }
  if ((small_chunks[index / 64].fetch_or(bit, std::memory_order_relaxed) & bit) != 0) {
    small_count.fetch_sub(1, std::memory_order_relaxed);
  }
  base::advise_small_pages(address_of(index), chunk_bytes);
}

void allow_huge(std::uint32_t index) {
  const std::uint64_t bit = std::uint64_t{1} << (index % 64);
  if ((small_chunks[index / 64].load(std::memory_order_relaxed) & bit) == 0 ||
      (small_chunks[index / 64].fetch_and(~bit, std::memory_order_relaxed) & bit) == 0) {
    return;
  }
  small_count.fetch_sub(1, std::memory_order_relaxed);
  base::advise_huge_pages(address_of(index), chunk_bytes);
}

}  // namespace

void give_back(std::uint32_t first_page, std::uint32_t pages) {
  const std::uint32_t end = first_page + pages;
  // The last chunk of a small region may be cut short: it is never whole.
  const auto is_whole = [&](std::uint32_t index) { return index * chunk >= first_page && (index + 1) * chunk <= end; };
  const std::uint32_t first = first_page / chunk;
  const std::uint32_t last = (end - 1) / chunk;
  const bool huge = settings.huge_pages;
  Bound<Loop::chunks_given_back> parts(2);
  for (std::uint32_t index = first; huge && index <= last; ++index) {
    parts.turn();
    if (!is_whole(index)) {
      keep_small(index);
    }
  }
  base::discard_pages(region.page_address(first_page), std::size_t{pages} << page_shift);
  Bound<Loop::chunks_given_back> wholes(2);
  for (std::uint32_t index = first; huge && index <= last; ++index) {
    wholes.turn();
    if (is_whole(index)) {
      allow_huge(index);
    }
  }
}

void begin_on_small_pages() {
  constexpr std::uint32_t first_chunks = 4;
  for (std::uint32_t index = 0;
       settings.huge_pages && index < first_chunks && (index + 1) * chunk_bytes <= region.bytes; ++index) {
    keep_small(index);
  }
}

void ask_for_huge_pages(bool huge) {
  for (Atomic<std::uint64_t>& word : small_chunks) {
    small_count.fetch_sub(static_cast<std::uint32_t>(std::popcount(word.exchange(0, std::memory_order_relaxed))),
                          std::memory_order_relaxed);
  }
  (huge ? base::advise_huge_pages : base::advise_small_pages)(region.base, region.mapped());
}

}  // namespace blockyard::heap
