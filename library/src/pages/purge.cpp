#include "pages/purge.hpp"

#include <bit>
#include <utility>

#include "base/bound.hpp"

namespace blockyard::pages {

void HugePages::keep_small(std::uint32_t page) {
  const std::uint32_t chunk = page / pages_per_chunk;
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
  base::advise_huge_pages(address_of(first_page / pages_per_chunk), chunk_bytes);
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
    base::advise_small_pages(address_of(first_page / pages_per_chunk), chunk_bytes);
  }
  if (tried ? !dear && allowed : dear && asks()) {
    ask_everywhere(!dear);
  }
}

bool HugePages::give_back(std::uint32_t first_page, std::uint32_t pages) {
  const std::uint32_t end = first_page + pages;
  const auto for_each_chunk = [=](bool whole, auto&& act) {
    base::Bound chunks("chunks given back at once", 2);
    for (std::uint32_t chunk = first_page / pages_per_chunk; chunk * pages_per_chunk < end; ++chunk) {
      chunks.turn();
      // The last chunk of a small region may be cut short: it is never whole.
      if ((chunk * pages_per_chunk >= first_page && (chunk + 1) * pages_per_chunk <= end) == whole) {
        act(chunk);
      }
    }
  };
  for_each_chunk(false, [this](std::uint32_t chunk) { keep_small(chunk * pages_per_chunk); });
  const bool done = base::discard_pages(region_.page_address(first_page), std::size_t{pages} << page_shift);
  for_each_chunk(true, [this](std::uint32_t chunk) { allow_huge(chunk); });
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

bool Purge::purge_run(const PageRun& run) {
  const PageRun whole = pages_.with_decommitted_neighbours(run);
  const bool done = huge_pages_.give_back(whole.first, whole.length);
  if (done) {
    purged_.fetch_add(whole.length, std::memory_order_relaxed);
  }
  pages_.free(whole.first, done ? PageState::free_decommitted : PageState::free_dirty);
  return done;
}

void Purge::follow(std::uint16_t tick, const PageHeap::Lowest& lowest, std::uint64_t reserve, std::uint16_t delay) {
  note(lowest);
  now_.reserve_target = std::max(now_.reserve_target, reserve);
  if (static_cast<std::uint16_t>(tick - since_) >= delay) {
    since_ = tick;
    before_ = std::exchange(now_, {lowest.free, lowest.reserve, reserve});
  }
}

bool Purge::purge_one(std::uint64_t reserve, std::uint64_t most) {
  const std::uint64_t taken = surplus(pages_.totals().used, reserve, most);
  if (taken < PageHeap::least_taken) {
    return false;
  }
  // A chunk out of the longest run, however long that is; else a run that is no longer than what may go.
  const auto limit = [](std::uint64_t length) {
    return length >= pages_per_chunk ? PageHeap::no_limit : static_cast<std::uint32_t>(length);
  };
  PageRun run = pages_.take_free(PageState::free_dirty, limit(taken));
  if (run.length == 0) {
    // Of runs that the reserve is made of only what it never fell short by: else the next round would populate it
    // again.
    const std::uint64_t least = std::min(before_.reserve, now_.reserve);
    const std::uint64_t target = std::max(before_.reserve_target, now_.reserve_target);
    const std::uint64_t beyond =
        std::max<std::uint64_t>(least > target ? least - target : 0, PageHeap::reserve_run - 1);
    run = pages_.take_free(PageState::free_ready, limit(std::min(taken, beyond)));
  }
  if (run.length == 0) {
    return false;
  }
  const bool of_reserve = run.from == PageState::free_ready && run.length >= PageHeap::reserve_run;
  now_.take(run.length, of_reserve);
  before_.take(run.length, of_reserve);
  return purge_run(run);
}

}  // namespace blockyard::pages
