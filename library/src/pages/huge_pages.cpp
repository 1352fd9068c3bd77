#include "pages/huge_pages.hpp"

#include <array>
#include <atomic>
#include <bit>
#include <cstddef>

#include "base/pages.hpp"
#include "heap/atomic.hpp"
#include "heap/bound.hpp"
#include "heap/settings.hpp"
#include "pages/region.hpp"

namespace blockyard::heap {

namespace {

constexpr auto per_chunk = static_cast<std::uint32_t>(pages_per_chunk);

// A bit for each chunk that asks for small pages, or will where the region asks for huge ones again. Two threads that
// give parts of one chunk back at once may leave it with the wrong advice: no harm but a chunk on small pages.
constinit std::array<Atomic<std::uint64_t>, largest_region / chunk_bytes / 64> small_chunks{};
constinit Atomic<std::uint32_t> small_count{0};

char* address_of(std::uint32_t index) { return region.page_address(std::size_t{index} * per_chunk); }

void keep_small_chunk(std::uint32_t index) {
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
  if (settings.asks_for_huge_pages()) {
    base::advise_small_pages(address_of(index), chunk_bytes);
  }
}

void allow_huge(std::uint32_t index) {
  const std::uint64_t bit = std::uint64_t{1} << (index % 64);
  if ((small_chunks[index / 64].load(std::memory_order_relaxed) & bit) == 0 ||
      (small_chunks[index / 64].fetch_and(~bit, std::memory_order_relaxed) & bit) == 0) {
    return;
  }
  small_count.fetch_sub(1, std::memory_order_relaxed);
  if (settings.asks_for_huge_pages()) {
    base::advise_huge_pages(address_of(index), chunk_bytes);
  }
}

constinit Atomic<std::uint64_t> next_trial{0};  // ns

}  // namespace

void keep_small(std::uint32_t page) { keep_small_chunk(page / per_chunk); }

FirstTouch::FirstTouch(std::uint32_t first_page, bool may_try) : chunk_(first_page / per_chunk) {
  if (may_try && settings.huge_pages != 0 && settings.huge_pages_wait &&
      base::monotonic_ns() >= next_trial.load(std::memory_order_relaxed)) {
    tries_ = true;
    base::advise_huge_pages(address_of(chunk_), chunk_bytes);
  }
  begun_ = base::thread_time_ns();
}

FirstTouch::~FirstTouch() {
  constexpr std::uint64_t dear_ns = 2'000'000;
  constexpr std::uint64_t between_trials_ns = 10'000'000'000;
  const bool dear = base::thread_time_ns() - begun_ >= dear_ns;
  if (dear && settings.huge_pages != 0) {
    next_trial.store(base::monotonic_ns() + between_trials_ns, std::memory_order_relaxed);
  }
  if (tries_ && dear) {
    base::advise_small_pages(address_of(chunk_), chunk_bytes);
  }
  if (tries_ ? !dear && settings.huge_pages != 0 : dear && settings.asks_for_huge_pages()) {
    settings.huge_pages_wait = dear;
    ask_for_huge_pages(!dear);
  }
}

bool give_back(std::uint32_t first_page, std::uint32_t pages) {
  const std::uint32_t end = first_page + pages;
  // The last chunk of a small region may be cut short: it is never whole.
  const auto is_whole = [&](std::uint32_t index) {
    return index * per_chunk >= first_page && (index + 1) * per_chunk <= end;
  };
  const std::uint32_t first = first_page / per_chunk;
  const std::uint32_t last = (end - 1) / per_chunk;
  Bound<Loop::chunks_given_back> parts(2);
  for (std::uint32_t index = first; index <= last; ++index) {
    parts.turn();
    if (!is_whole(index)) {
      keep_small_chunk(index);
    }
  }
  const bool done = base::discard_pages(region.page_address(first_page), std::size_t{pages} << page_shift);
  Bound<Loop::chunks_given_back> wholes(2);
  for (std::uint32_t index = first; index <= last; ++index) {
    wholes.turn();
    if (is_whole(index)) {
      allow_huge(index);
    }
  }
  return done;
}

void ask_for_huge_pages(bool huge) {
  (huge ? base::advise_huge_pages : base::advise_small_pages)(region.base + never_mapped,
                                                              region.mapped() - never_mapped);
  for (std::uint32_t word = 0; huge && word < small_chunks.size(); ++word) {
    for (std::uint64_t left = small_chunks[word].load(std::memory_order_relaxed); left != 0; left &= left - 1) {
      base::advise_small_pages(address_of(word * 64 + static_cast<std::uint32_t>(std::countr_zero(left))), chunk_bytes);
    }
  }
}

}  // namespace blockyard::heap
