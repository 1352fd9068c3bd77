// Sampled blocks: each on pages of its own, between pages that nobody may touch; a block of no bytes has none. The
// pages of a freed one can't be touched either until its turn comes again, 128 samples later, 16 for blocks above a
// page. A touch ends the program with a report of what it was. (As Chromium's GWP-ASan and LLVM's do it.)
//
// The first blocks of a process are all sampled, and the further it gets the fewer, until one in so many is: a
// program that hardly allocates is guarded well, at a few microseconds a sample.
#pragma once

#include <cstddef>
#include <cstdint>

namespace blockyard::checks {

/// Readies the pages, for one block in `average` at last; 0: none. False: there is no address space.
bool start_sampler(std::uint32_t average);
/// Takes over SIGSEGV, once the C library is ready, to report faults of sampled blocks. A fault elsewhere goes on to
/// who had it before.
void start_trap();

/// How many blocks the calling thread allocates until the next one that is sampled.
extern constinit thread_local std::uint32_t until_sample __attribute__((tls_model("initial-exec")));
/// Draws that number. False: this block is none either.
bool draw_sample();
/// Whether the calling thread's next block is one. O(1).
inline bool wants_sample() { return --until_sample == 0 && draw_sample(); }
/// Null: the block is too large, or all places hold live blocks. O(1), one system call, and one write for each byte of
/// a block up to a page.
void* allocate_sampled(std::size_t size, std::size_t alignment);

/// Places for blocks up to a page, and for those up to large_sample; behind each a page that nobody may touch.
inline constexpr std::size_t small_samples = 128;
inline constexpr std::size_t large_samples = 16;
inline constexpr std::size_t large_sample = std::size_t{512} << 10;
extern char* sampled_pages;
extern std::size_t sampled_area;
inline bool is_sampled(const void* pointer) {
  return static_cast<std::size_t>(static_cast<const char*>(pointer) - sampled_pages) < sampled_area;
}
/// These report what is no live block. Two system calls; none.
void free_sampled(void* block);
std::size_t sampled_bytes(const void* block);

}  // namespace blockyard::checks
