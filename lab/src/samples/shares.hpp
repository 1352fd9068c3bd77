// Divides a pass over rows among threads.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <thread>
#include <vector>

namespace blockyard::samples {

/// The passes use at most two threads: the machine may have no more, and the caller needs them too.
inline constexpr std::size_t max_threads = 2;

/// How many threads a pass over so many rows is worth, `wanted` or fewer.
inline std::size_t shares_of(std::uint64_t rows, std::size_t wanted) {
  return rows < 4096 ? 1 : std::clamp<std::size_t>(wanted, 1, max_threads);
}

/// Calls `work(share, begin, end)` for each share of `rows` rows, each on a thread of its own, the first on this one.
/// Rethrows what the first of them throws.
template <typename Work>
void for_each_share(std::uint64_t rows, std::size_t shares, Work work) {
  std::vector<std::exception_ptr> failures(shares);
  const auto guarded = [&](std::size_t share) {
    try {
      work(share, rows * share / shares, rows * (share + 1) / shares);
    } catch (...) {
      failures[share] = std::current_exception();
    }
  };
  {
    std::vector<std::jthread> helpers;
    for (std::size_t share = 1; share < shares; ++share) helpers.emplace_back(guarded, share);
    guarded(0);
  }
  for (const std::exception_ptr& failure : failures) {
    if (failure) std::rethrow_exception(failure);
  }
}

}  // namespace blockyard::samples
