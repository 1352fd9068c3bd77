#include "base/pages.hpp"

#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <iterator>

#include "base/bits.hpp"
#include "base/kept_errno.hpp"
#include "base/sanitizer.hpp"

namespace blockyard::base {

namespace {

// What the heap's first use calls goes straight to the kernel: a program may have the C library's functions replaced by
// some that allocate. A sanitizer's are called.
void* map(void* address, std::size_t bytes, int protection) {
  constexpr int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
#if BLOCKYARD_SANITIZED
  return mmap(address, bytes, protection, flags, -1, 0);
#else
  return reinterpret_cast<void*>(syscall(SYS_mmap, address, bytes, protection, flags, -1, 0));
#endif
}
void unmap(void* address, std::size_t bytes) {
#if BLOCKYARD_SANITIZED
  munmap(address, bytes);
#else
  syscall(SYS_munmap, address, bytes);
#endif
}

void* map_aligned(std::size_t bytes, std::size_t alignment, int protection) {
  // The kernel aligns to pages only: for more, reserve more and give the ends back.
  const std::size_t slack = alignment > page_size() ? alignment : 0;
  bytes = align_up(bytes, page_size());
  if (bytes == 0 || bytes + slack < bytes) {
    return nullptr;
  }
  const KeptErrno kept;
  void* const mapped = map(nullptr, bytes + slack, protection);
  if (mapped == MAP_FAILED) {
    return nullptr;
  }
  if (slack == 0) {
    return mapped;
  }
  char* const begin = static_cast<char*>(mapped);
  const auto address = reinterpret_cast<std::uintptr_t>(begin);
  const std::size_t lead = ((address + alignment - 1) & ~(alignment - 1)) - address;
  if (lead != 0) {
    unmap(begin, lead);
  }
  if (slack != lead) {
    unmap(begin + lead + bytes, slack - lead);
  }
  return begin + lead;
}

// The system's pages that hold a stretch, or that lie wholly in it.
struct Pages {
  char* begin;
  std::size_t bytes;

  static Pages around(void* memory, std::size_t bytes) {
    const auto address = reinterpret_cast<std::uintptr_t>(memory);
    const std::size_t lead = address & (page_size() - 1);
    return {static_cast<char*>(memory) - lead, align_up(lead + bytes, page_size())};
  }
  static Pages within(void* memory, std::size_t bytes) {
    const auto address = reinterpret_cast<std::uintptr_t>(memory);
    const std::size_t lead = align_up(address, page_size()) - address;
    return {static_cast<char*>(memory) + lead, lead < bytes ? align_down(bytes - lead, page_size()) : 0};
  }
};

bool allow(const Pages& pages, int protection) {
  const KeptErrno kept;
  return syscall(SYS_mprotect, pages.begin, pages.bytes, protection) == 0;
}

bool advise(const Pages& pages, int advice) {
  const KeptErrno kept;
  return syscall(SYS_madvise, pages.begin, pages.bytes, advice) == 0;
}

std::uint64_t nanoseconds(const timespec& now) {
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000u + static_cast<std::uint64_t>(now.tv_nsec);
}

std::uint64_t clock_ns(clockid_t clock) {
  timespec now{};
  syscall(SYS_clock_gettime, clock, &now);
  return nanoseconds(now);
}

}  // namespace

std::size_t page_size() {
  static constinit std::atomic<std::size_t> known{0};
  std::size_t bytes = known.load(std::memory_order_relaxed);
  if (bytes == 0) {
    bytes = getauxval(AT_PAGESZ);
    known.store(bytes, std::memory_order_relaxed);
  }
  return bytes;
}

void* reserve_pages(std::size_t bytes, std::size_t alignment) {
  return map_aligned(bytes, alignment, PROT_READ | PROT_WRITE);
}

// The system places mappings downwards from the highest gap that is large enough: the lowest address there is taken
// last. The calls bypass ThreadSanitizer, which ends a program that gets an address it does not know.
void* find_free_space(std::size_t bytes, std::size_t alignment, std::size_t for_others) {
  bytes += for_others;
  const KeptErrno kept;
  const auto gap_of = [](std::size_t size) {
    const long begin = syscall(SYS_mmap, nullptr, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (begin == -1) {
      return std::uintptr_t{0};
    }
    syscall(SYS_munmap, begin, size);
    return static_cast<std::uintptr_t>(begin);
  };
  std::uintptr_t begin = gap_of(bytes + alignment);
  if (begin != 0) {
    begin = (begin + alignment - 1) & ~(alignment - 1);
  } else if (errno != ENOMEM || address_space_is_limited()) {
    // A limit forbids even to ask: what lies below the system's next mapping is probably free.
    const std::uintptr_t end = gap_of(page_size());
    begin = end > bytes ? (end - bytes) & ~(alignment - 1) : 0;
  }
  return reinterpret_cast<void*>(begin);
}

// A hint, no MAP_FIXED_NOREPLACE: Linux takes a hint whose pages are free, also before 4.17. ThreadSanitizer replaces
// an address that it does not know by 0, where the flag would map page 0.
bool reserve_pages_at(void* address, std::size_t bytes) {
  const KeptErrno kept;
  void* const mapped = map(address, bytes, PROT_READ | PROT_WRITE);
  if (mapped != MAP_FAILED && mapped != address) {
    unmap(mapped, bytes);
  }
  return mapped == address;
}

bool address_space_is_limited() {
  const KeptErrno kept;
  rlimit space{};
  rlimit data{};
  return (syscall(SYS_prlimit64, 0, RLIMIT_AS, nullptr, &space) == 0 && space.rlim_cur != RLIM_INFINITY) ||
         (syscall(SYS_prlimit64, 0, RLIMIT_DATA, nullptr, &data) == 0 && data.rlim_cur != RLIM_INFINITY);
}

void* reserve_space(std::size_t bytes, std::size_t alignment) { return map_aligned(bytes, alignment, PROT_NONE); }

bool commit_pages(void* pages, std::size_t bytes) { return allow(Pages::around(pages, bytes), PROT_READ | PROT_WRITE); }
bool commit_readable_pages(void* pages, std::size_t bytes) { return allow(Pages::around(pages, bytes), PROT_READ); }
bool protect_pages(void* pages, std::size_t bytes) { return allow(Pages::within(pages, bytes), PROT_NONE); }

void release_pages(void* pages, std::size_t bytes) {
  const KeptErrno kept;
  unmap(pages, align_up(bytes, page_size()));
}

bool discard_pages(void* pages, std::size_t bytes) {
  const Pages whole = Pages::within(pages, bytes);
  if (whole.bytes == 0 || !advise(whole, MADV_DONTNEED)) {
    return false;
  }
  auto* const begin = static_cast<char*>(pages);
  char* const end = whole.begin + whole.bytes;
  std::memset(begin, 0, static_cast<std::size_t>(whole.begin - begin));
  std::memset(end, 0, static_cast<std::size_t>(begin + bytes - end));
  return true;
}

// A huge page is as many pages as a page has entries for: of 4 KiB that is 2 MiB, of 16 KiB 32, of 64 KiB 512.
void advise_huge_pages(void* pages, std::size_t bytes) {
  advise(Pages::within(pages, bytes), page_size() == least_page ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
}
void advise_small_pages(void* pages, std::size_t bytes) { advise(Pages::within(pages, bytes), MADV_NOHUGEPAGE); }

// Of how many bytes an entry tells is seen by how many there are: qemu's are of the machine's pages, not the program's.
std::size_t resident_bytes(const void* pages, std::size_t bytes) {
  constexpr std::size_t bytes_a_call = std::size_t{16} << 20;
  constexpr unsigned char unwritten = 0xFE;
  const KeptErrno kept;
  std::size_t resident = 0;
  for (std::size_t done = 0; done < bytes; done += bytes_a_call) {
    unsigned char in_memory[bytes_a_call / 4096 + 1];  // pages have at least 4 KiB
    std::memset(in_memory, unwritten, sizeof in_memory);
    const std::size_t part = align_up(std::min(bytes - done, bytes_a_call), page_size());
    void* const address = static_cast<char*>(const_cast<void*>(pages)) + done;  // mincore reads nothing there
    if (mincore(address, part, in_memory) != 0 || in_memory[0] == unwritten) {
      break;
    }
    const auto entries = static_cast<std::size_t>(std::find(in_memory, std::end(in_memory), unwritten) - in_memory);
    const auto those_in =
        std::count_if(in_memory, in_memory + entries, [](unsigned char page) { return (page & 1) != 0; });
    resident += static_cast<std::size_t>(those_in) * (part / entries);
  }
  return resident;
}

std::size_t memory_of_machine() {
  struct sysinfo now {};
  return syscall(SYS_sysinfo, &now) == 0 ? std::size_t{now.totalram} * now.mem_unit : ~std::size_t{0};
}

std::uint64_t program_monotonic_ns() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return nanoseconds(now);
}
std::uint64_t monotonic_ns() { return clock_ns(CLOCK_MONOTONIC); }
std::uint64_t thread_time_ns() { return clock_ns(CLOCK_THREAD_CPUTIME_ID); }

void* c_allocate(std::size_t alignment, std::size_t bytes) { return std::aligned_alloc(alignment, bytes); }
void c_free(void* memory) { std::free(memory); }

void yield_thread() { syscall(SYS_sched_yield); }

}  // namespace blockyard::base
