// Memory from the operating system: reserve address space, populate it, give it back. Sizes are in bytes. Every
// function is thread-safe and keeps errno.
//
// Bounds on Windows: find_free_space reserves what it finds, a stretch lies in what one call reserved, of which the
// address space goes back as a whole only, what is readable and writable counts against the commit limit, and
// discard_pages keeps all while less than that, and 64 MiB, can be committed. Where other processes take that much
// meanwhile it waits for a second, and then ends the program with a sentence. Nothing is asked of huge pages, no
// memory_room is known, and resident_bytes takes a system call per MiB.
//
// The system's pages have 4, 16 or 64 KiB, and no caller needs to know: what is reserved or committed are the pages
// that hold the stretch, what is protected or given back are those that lie wholly in it.
#pragma once

#include <cstddef>
#include <cstdint>

namespace blockyard::base {

/// Bytes of a page of the system, by which it protects memory and takes it back: a power of two up to largest_page.
std::size_t page_size();
inline constexpr std::size_t largest_page = std::size_t{64} << 10;
/// Bytes that a first touch brings in at least.
inline constexpr std::size_t least_page = 4096;

/// Reserves readable and writable zeroed memory at a multiple of a page and of `alignment`, a power of two. Populates
/// none of it. Null when the address space or RLIMIT_AS does not allow it. One to three system calls.
void* reserve_pages(std::size_t bytes, std::size_t alignment = 1);

/// An address at a multiple of `alignment`, a power of two of at least a page, with `bytes` of free address space
/// behind it, where the system places other mappings last: `for_others` bytes lie between. Null when there is no such
/// address. Under a limit it may be taken. It is only a place to try reserve_pages_at at: nothing is reserved. Two to
/// seven system calls.
void* find_free_space(std::size_t bytes, std::size_t alignment, std::size_t for_others);

/// As reserve_pages, at exactly this page. False, with nothing changed, when something else is mapped there, or when
/// the limits of the process do not allow it. One to two system calls.
bool reserve_pages_at(void* address, std::size_t bytes);

/// Whether RLIMIT_AS or RLIMIT_DATA limits the address space of the process now. Two system calls.
bool address_space_is_limited();

/// Reserves address space at a multiple of `alignment`, without access until commit_pages. Unlike reserve_pages, it
/// costs nothing under strict overcommit, and mlockall does not populate it. Null when the address space does not allow
/// it.
void* reserve_space(std::size_t bytes, std::size_t alignment);

/// Makes reserved space readable and writable; memory comes with the first touch. May be called again for the same
/// space. False when the system refuses. One system call.
bool commit_pages(void* pages, std::size_t bytes);

/// Makes reserved space readable: it reads as zeros, and a write ends the program. False when the system refuses. One
/// system call.
bool commit_readable_pages(void* pages, std::size_t bytes);

/// Takes access away until commit_pages: any access ends the program. Contents stay. False when the system refuses,
/// since each such stretch counts against the number of mappings of a process.
bool protect_pages(void* pages, std::size_t bytes);

/// Gives back a reservation, or a part of one that begins and ends with a page, with its address space.
void release_pages(void* pages, std::size_t bytes);

/// Gives the memory back and keeps the address space: the next touch finds zeros. What the stretch has of its first and
/// last page, where others have the rest, is set to zeros and stays. False, and the contents stay, where it holds no
/// whole page, or the system refuses: of pages that mlock or mlockall holds.
[[nodiscard]] bool discard_pages(void* pages, std::size_t bytes);

/// Asks for transparent huge pages of 2 MiB; where the system's are larger, for small pages, or the first touch would
/// bring in 32 or 512 MiB. The system may ignore it.
void advise_huge_pages(void* pages, std::size_t bytes);

/// Asks for small pages, from the next touch on.
void advise_small_pages(void* pages, std::size_t bytes);

/// Bytes of a stretch that are resident now; 0 where the system does not say. O(pages), one system call per 16 MiB.
/// Allocates nothing.
std::size_t resident_bytes(const void* pages, std::size_t bytes);

/// Bytes of memory that the machine has; the greatest number where the system does not say. One system call.
std::size_t memory_of_machine();

struct MemoryRoom {
  std::uint64_t bytes;  ///< the process's control groups may take so many more; the greatest number: no limit is known
  unsigned pressure;    ///< percent of the last ten seconds in which something there waited for memory
};

/// What the limits of the control groups (version 2) leave, file pages that can be dropped counted as free. `root`
/// comes before every path that is read, for tests. Reads up to five files for each group from the process's own
/// upwards. Allocates nothing.
MemoryRoom memory_room(const char* root);

/// Nanoseconds of CLOCK_MONOTONIC, and those of processor time of the calling thread. A system call.
std::uint64_t monotonic_ns();
/// CLOCK_MONOTONIC as the C library reads it, without a system call. The program may have put a function of its own in
/// its place, which allocates: not for malloc and free.
std::uint64_t program_monotonic_ns();
std::uint64_t thread_time_ns();

/// Memory of the C library's at a multiple of `alignment`, a power of two of which `bytes` is a multiple; and its way
/// back. Null when it has none.
void* c_allocate(std::size_t alignment, std::size_t bytes);
void c_free(void* memory);

/// Yields the processor to another thread.
void yield_thread();

}  // namespace blockyard::base
