// Memory from the operating system: address space, its population, and its return. Sizes are bytes, multiples of 4096.
#pragma once

#include <cstddef>
#include <cstdint>

namespace blockyard::base {

/// Reserves readable and writable zeroed memory at a multiple of `alignment` (a power of two, at least 4096), without
/// committing or populating any of it. Null when the address space or RLIMIT_AS does not allow it. One or two system
/// calls; thread-safe.
void* reserve_pages(std::size_t bytes, std::size_t alignment);

/// Reserves address space only, at a multiple of `alignment`: no access until commit_pages. Unlike reserve_pages it
/// costs nothing under strict overcommit and is not brought in by mlockall. Null when the address space does not allow
/// it.
void* reserve_space(std::size_t bytes, std::size_t alignment);

/// Makes a stretch of reserved space readable and writable; memory comes with the first touch. False when the system
/// refuses. One system call; harmless for what is committed already.
bool commit_pages(void* pages, std::size_t bytes);

/// Makes a stretch of reserved space readable: it reads as zeros, and whoever writes to it ends the program. False when
/// the system refuses. One system call.
bool commit_readable_pages(void* pages, std::size_t bytes);

/// Takes access away until commit_pages: whoever touches the pages ends the program. Contents stay. False when the
/// system refuses (each such stretch counts against the number of mappings that a process may have).
bool protect_pages(void* pages, std::size_t bytes);

/// Gives a reservation (or an aligned part of one) back, address space and all.
void release_pages(void* pages, std::size_t bytes);

/// Gives the memory back and keeps the address space: the next touch finds zeroed pages.
void discard_pages(void* pages, std::size_t bytes);

/// Asks for transparent huge pages where the system allows them; nothing happens where it does not.
void advise_huge_pages(void* pages, std::size_t bytes);

/// Takes that advice back: small pages from the next touch on.
void advise_small_pages(void* pages, std::size_t bytes);

/// Brings memory in with one system call instead of one fault a page, but holds the address-space lock meanwhile: other
/// threads' mmap waits. Returns whether the system can (Linux 5.14); if not, nothing happened.
bool populate_pages(void* pages, std::size_t bytes);

/// Bytes of a stretch that are in memory at this moment; where the system does not tell, 0. O(pages), one system call
/// for each 16 MiB; allocates nothing.
std::size_t resident_bytes(const void* pages, std::size_t bytes);

/// Bytes of memory that the machine has; where the system does not tell, the most that can be said. One system call.
std::size_t memory_of_machine();

/// Nanoseconds of CLOCK_MONOTONIC. No system call on Linux.
std::uint64_t monotonic_ns();

/// Lets another thread run.
void yield_thread();

}  // namespace blockyard::base
