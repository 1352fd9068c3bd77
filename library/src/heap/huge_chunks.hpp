// Which chunks of the region may be huge pages, and how memory goes back to the operating system.
//
// The whole region asks for huge pages, so that the first touch of a chunk brings all of it in. But where huge pages
// are wanted, Linux's khugepaged makes one of every 2 MiB in which a single page is populated: it fills again what was
// given back of a chunk, and threads that use the rest wait meanwhile. So a chunk that is given back in part asks for
// small pages until all of it has gone back.
//
// Bound: at most two system calls more for a purge. A chunk that asks for other pages than its neighbours is a mapping
// of its own, of which a process may have 65,530: at most most_small_chunks do, 8 GiB; what is left of others
// khugepaged may fill.
#pragma once

#include <cstdint>

namespace blockyard::heap {

inline constexpr std::uint32_t most_small_chunks = 4096;

/// Gives pages back that the caller owns; the next touch finds them zeroed. At most two chunks.
void give_back(std::uint32_t first_page, std::uint32_t pages);

/// Asks for small pages in the first chunks, where the region asks for huge ones: the first touch of a program that
/// hardly allocates would bring a whole chunk in. Once, before anything is allocated.
void begin_on_small_pages();

/// Asks for huge pages, or for small ones, everywhere; once the region is reserved.
void ask_for_huge_pages(bool huge);

}  // namespace blockyard::heap
