// Which chunks of the region may be huge pages, and how memory goes back to the operating system.
//
// The whole region asks for huge pages, so that the first touch of a chunk brings all of it in. But where huge pages
// are wanted, Linux's khugepaged makes one of every 2 MiB in which a single page is populated: it fills again what was
// given back of a chunk, and threads that use the rest wait meanwhile. So a chunk that is given back in part asks for
// small pages until all of it has gone back.
//
// A huge page is cleared in 0.1 ms. But the kernel of a virtual machine may give free memory to its host, and the first
// write to such a page takes 5 to 7 ms, in which the host brings in each 4 KiB of it; as small pages the same takes 1
// ms. So once a first touch was that dear the region asks for small pages, until a trial after ten seconds, which only
// the janitor's thread and by_heap_prefault make. A preloaded
// heap begins on small pages, and the janitor's first chunk is the trial: a program that hardly allocates never has
// one.
//
// Bound: at most two system calls more for a purge. A chunk that asks for other pages than its neighbours is a mapping
// of its own, of which a process may have 65,530: at most most_small_chunks do, 8 GiB; what is left of others
// khugepaged may fill.
#pragma once

#include <cstdint>

namespace blockyard::heap {

inline constexpr std::uint32_t most_small_chunks = 4096;

/// Gives pages back that the caller owns; the next touch finds them zeroed. At most two chunks. False, and the contents
/// stay, where the system refuses.
[[nodiscard]] bool give_back(std::uint32_t first_page, std::uint32_t pages);

/// Asks for huge pages, or for small ones, everywhere; once the region is reserved. A system call, and for huge pages
/// one more for each chunk that was given back in part.
void ask_for_huge_pages(bool huge);

/// Has the chunk of a page ask for small pages until all of it has gone back: what is touched of it by the page is to
/// take no more. A system call, once a chunk.
void keep_small(std::uint32_t page);

/// Stands around the first touch of pages of one chunk, which the caller owns, and learns from it whether huge pages
/// are dear. `may_try`: a huge page may be asked for to see whether they still are.
class FirstTouch {
 public:
  FirstTouch(std::uint32_t first_page, bool may_try);
  ~FirstTouch();
  FirstTouch(const FirstTouch&) = delete;
  FirstTouch& operator=(const FirstTouch&) = delete;

 private:
  std::uint32_t chunk_;
  std::uint64_t begun_;  // processor time of the thread: whoever ran in between does not count
  bool tries_ = false;
};

}  // namespace blockyard::heap
