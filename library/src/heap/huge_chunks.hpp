// Which chunks of the region may be huge pages, and how memory goes back to the operating system.
//
// The whole region asks for huge pages, so that a chunk comes in as one whoever touches it first. But where huge pages
// are asked for, Linux's khugepaged makes one of every 2 MiB in which a single page is populated: it fills again what
// was given back of a chunk, and whoever uses the rest of it waits meanwhile. So a chunk that is given back in part asks
// for small pages until all of it has gone back.
//
// Bound: one or two system calls more for a purge that leaves a part of a chunk or takes the last of it. A chunk that
// asks for other pages than its neighbours is a mapping of its own, of which a process may have 65,530: at most
// most_small_chunks do, 8 GiB; what is left of others khugepaged may fill.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>

#include "heap/atomic.hpp"

namespace blockyard::heap {

inline constexpr std::uint32_t most_small_chunks = 4096;

/// Whether the next chunk should be a huge page, by what the last ones cost. A huge page is cleared in 0.1 ms; but the
/// kernel of a virtual machine may give its free ones to the host (free page reporting, a balloon), and the first write
/// to such a one then takes 5 to 7 ms, since the host brings in each 4 KiB of it. Small pages come from what is too
/// scattered to be given away: 1 ms for as much. So after a dear one 8, 16, at most 64 chunks are small before the next
/// trial, and a cheap one halves that.
///
/// But whoever touches each page of a large block waits twice as long where they are small. So while such blocks are
/// wanted, a chunk is huge however dear, as long as populating has taken less than 1/160 of the time: an allowance that
/// grows with the clock to at most 6 ms, and is spent by what populating takes. Thread-safe; a count lost between two
/// threads does no harm.
class HugePageTrials {
 public:
  static constexpr std::uint64_t dear_ns = 2'000'000;
  static constexpr std::uint32_t least_small = 8;
  static constexpr std::uint32_t most_small = 64;
  static constexpr std::int64_t most_allowed_ns = 6'000'000;
  static constexpr std::uint64_t allowed_part = 160;

  bool next_is_huge(std::uint64_t now_ns, bool for_large_blocks) {
    const std::uint64_t elapsed = now_ns - std::min(now_ns, allowed_at_.load(std::memory_order_relaxed));
    allowed_at_.store(now_ns, std::memory_order_relaxed);
    const std::int64_t earned = static_cast<std::int64_t>(elapsed / allowed_part);
    const std::int64_t allowed = std::min(allowed_.load(std::memory_order_relaxed) + earned, most_allowed_ns);
    allowed_.store(allowed, std::memory_order_relaxed);
    const std::uint32_t left = small_left_.load(std::memory_order_relaxed);
    if (left == 0 || (for_large_blocks && allowed > 0)) {
      return true;
    }
    small_left_.store(left - 1, std::memory_order_relaxed);
    return false;
  }

  /// The first write to a chunk that asked for huge pages took so much of the thread's processor time.
  void took(std::uint64_t ns) {
    const std::uint32_t before = pause_.load(std::memory_order_relaxed);
    const bool dear = ns >= dear_ns;
    const std::uint32_t pause = dear ? std::clamp(2 * before, least_small, most_small) : before / 2;
    pause_.store(pause, std::memory_order_relaxed);
    small_left_.store(dear ? pause : 0, std::memory_order_relaxed);
  }

  /// What populating the chunk took in all, in processor time.
  void spend(std::uint64_t ns) {
    allowed_.store(std::max(allowed_.load(std::memory_order_relaxed) - static_cast<std::int64_t>(ns), -most_allowed_ns),
                   std::memory_order_relaxed);
  }

 private:
  Atomic<std::uint32_t> small_left_{0};
  Atomic<std::uint32_t> pause_{0};
  Atomic<std::int64_t> allowed_{most_allowed_ns};
  Atomic<std::uint64_t> allowed_at_{0};
};

/// Populates a raw chunk, which the caller owns, by one write a page: as a huge page or, where those are dear or not
/// wanted, on small ones. `for_large_blocks`: blocks were wanted lately that profit from a huge page even if it is dear.
void populate_raw_chunk(std::uint32_t first_page, bool for_large_blocks);

/// False where huge pages are wanted and to be had everywhere, so that it is all the same where memory comes from.
bool some_chunks_are_small();

/// Whether all pages of the run lie in chunks that may be huge pages; racy. O(chunks), which are two at most for the
/// runs that it is asked of.
bool may_be_huge(std::uint32_t first_page, std::uint32_t pages);

/// Gives pages back that the caller owns; the next touch finds them zeroed. At most two chunks.
void give_back(std::uint32_t first_page, std::uint32_t pages);

/// Asks for huge pages, or for small ones, everywhere; once the region is reserved.
void ask_for_huge_pages(bool huge);

}  // namespace blockyard::heap
