#include "pages/huge_pages.hpp"

#include <bit>

#include "base/bound.hpp"

namespace blockyard::pages {

namespace {

constexpr auto per_chunk = static_cast<std::uint32_t>(pages_per_chunk);

}  // namespace

void HugePages::keep_small_chunk(std::uint32_t chunk) {
  const std::uint64_t bit = std::uint64_t{1} << (chunk % 64);
  Atomic<std::uint64_t>& word = small_chunks_[chunk / 64];
  if ((word.load(std::memory_order_relaxed) & bit) != 0) {
    return;
  }
  if (small_count_.fetch_add(1, std::memory_order_relaxed) >= most_small_chunks) {
    small_count_.fetch_sub(1, std::memory_order_relaxed);
    return;
  }
  if ((word.fetch_or(bit, std::memory_order_relaxed) & bit) != 0) {
    small_count_.fetch_sub(1, std::memory_order_relaxed);
  }
  if (asks()) {
    base::advise_small_pages(address_of(chunk), chunk_bytes);
  }
}

void HugePages::allow_huge(std::uint32_t chunk) {
  const std::uint64_t bit = std::uint64_t{1} << (chunk % 64);
  Atomic<std::uint64_t>& word = small_chunks_[chunk / 64];
  if ((word.load(std::memory_order_relaxed) & bit) == 0 ||
      (word.fetch_and(~bit, std::memory_order_relaxed) & bit) == 0) {
    return;
  }
  small_count_.fetch_sub(1, std::memory_order_relaxed);
  if (asks()) {
    base::advise_huge_pages(address_of(chunk), chunk_bytes);
  }
}

bool HugePages::try_one(std::uint32_t first_page) {
  if (!allowed_.load(std::memory_order_relaxed) || asks() ||
      base::monotonic_ns() < next_trial_.load(std::memory_order_relaxed)) {
    return false;
  }
  base::advise_huge_pages(address_of(first_page / per_chunk), chunk_bytes);
  return true;
}

void HugePages::learn(std::uint32_t first_page, bool tried, std::uint64_t took_ns) {
  constexpr std::uint64_t dear_ns = 2'000'000;
  constexpr std::uint64_t between_trials_ns = 10'000'000'000;
  const bool dear = took_ns >= dear_ns;
  const bool allowed = allowed_.load(std::memory_order_relaxed);
  if (dear && allowed) {
    next_trial_.store(base::monotonic_ns() + between_trials_ns, std::memory_order_relaxed);
  }
  if (tried && dear) {
    base::advise_small_pages(address_of(first_page / per_chunk), chunk_bytes);
  }
  if (tried ? !dear && allowed : dear && asks()) {
    ask_everywhere(!dear);
  }
}

bool HugePages::give_back(std::uint32_t first_page, std::uint32_t pages) {
  const std::uint32_t end = first_page + pages;
  // The last chunk of a small region may be cut short: it is never whole.
  const auto is_whole = [&](std::uint32_t chunk) {
    return chunk * per_chunk >= first_page && (chunk + 1) * per_chunk <= end;
  };
  const std::uint32_t first = first_page / per_chunk;
  const std::uint32_t last = (end - 1) / per_chunk;
  base::Bound parts("chunks given back at once", 2);
  for (std::uint32_t chunk = first; chunk <= last; ++chunk) {
    parts.turn();
    if (!is_whole(chunk)) {
      keep_small_chunk(chunk);
    }
  }
  const bool done = base::discard_pages(region_.page_address(first_page), std::size_t{pages} << page_shift);
  base::Bound wholes("chunks given back at once", 2);
  for (std::uint32_t chunk = first; chunk <= last; ++chunk) {
    wholes.turn();
    if (is_whole(chunk)) {
      allow_huge(chunk);
    }
  }
  return done;
}

void HugePages::ask_everywhere(bool huge) {
  region_.asks_for_huge_pages.store(huge, std::memory_order_seq_cst);
  (huge ? base::advise_huge_pages : base::advise_small_pages)(region_.base + never_mapped,
                                                              region_.mapped() - never_mapped);
  for (std::uint32_t word = 0; huge && word < small_chunks_.size(); ++word) {
    for (std::uint64_t left = small_chunks_[word].load(std::memory_order_relaxed); left != 0; left &= left - 1) {
      base::advise_small_pages(address_of(word * 64 + static_cast<std::uint32_t>(std::countr_zero(left))), chunk_bytes);
    }
  }
}

void HugePages::allow(bool allowed) {
  allowed_.store(allowed, std::memory_order_relaxed);
  ask_everywhere(allowed);
}

void HugePages::allow_from_start(bool allowed, bool begin_small) {
  allowed_.store(allowed, std::memory_order_relaxed);
  region_.asks_for_huge_pages.store(allowed && !begin_small, std::memory_order_relaxed);
}

}  // namespace blockyard::pages
