// Windows hands out address space in steps of 64 KiB, and commits, protects and takes back pages of 4 KiB.
#include "base/pages.hpp"

#include "base/windows/windows.hpp"

#include <psapi.h>

#include <malloc.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "base/bits.hpp"
#include "base/say.hpp"
#include "base/windows/kept_errors.hpp"

namespace blockyard::base {

namespace {

std::uintptr_t address_of(const void* pointer) { return reinterpret_cast<std::uintptr_t>(pointer); }

// The system aligns to its granularity: for more, finds room for more, and takes the aligned part of it. Another thread
// may come first.
void* reserve(std::size_t bytes, std::size_t alignment, DWORD kind, DWORD protection) {
  const KeptErrors kept;
  bytes = align_up(bytes, page_size());
  if (bytes == 0) {
    return nullptr;
  }
  constexpr std::size_t granularity = std::size_t{64} << 10;
  if (alignment <= granularity) {
    return VirtualAlloc(nullptr, bytes, kind, protection);
  }
  constexpr int tries = 16;
  for (int turn = 0; turn < tries && bytes + alignment > bytes; ++turn) {
    void* const room = VirtualAlloc(nullptr, bytes + alignment, MEM_RESERVE, PAGE_NOACCESS);
    if (room == nullptr) {
      return nullptr;
    }
    VirtualFree(room, 0, MEM_RELEASE);
    void* const place = reinterpret_cast<void*>(align_up(address_of(room), std::uintptr_t{alignment}));
    if (void* const mapped = VirtualAlloc(place, bytes, kind, protection); mapped != nullptr) {
      return mapped;
    }
  }
  return nullptr;
}

struct Stretch {
  char* begin;
  char* end;

  static Stretch around(void* memory, std::size_t bytes) {
    const std::uintptr_t at = address_of(memory);
    return of(align_down(at, std::uintptr_t{page_size()}), align_up(at + bytes, std::uintptr_t{page_size()}));
  }
  static Stretch within(void* memory, std::size_t bytes) {
    const std::uintptr_t at = address_of(memory);
    const std::uintptr_t begin = align_up(at, std::uintptr_t{page_size()});
    return of(begin, std::max(begin, align_down(at + bytes, std::uintptr_t{page_size()})));
  }
  static Stretch of(std::uintptr_t begin, std::uintptr_t end) {
    return {reinterpret_cast<char*>(begin), reinterpret_cast<char*>(end)};
  }
  std::size_t bytes() const { return static_cast<std::size_t>(end - begin); }
};

// Nothing asks what the state of pages is, where it can be helped: the system looks at each page behind them that is in
// the same state, which in a region of many gigabytes takes longer than the call that is wanted.
bool commit(const Stretch& pages, DWORD protection) {
  return VirtualAlloc(pages.begin, pages.bytes(), MEM_COMMIT, protection) != nullptr;
}

bool allow(const Stretch& pages, DWORD protection) {
  const KeptErrors kept;
  DWORD before = 0;
  return commit(pages, protection) && VirtualProtect(pages.begin, pages.bytes(), protection, &before) != 0;
}

// Whether there is room for as much as is given back, and more than that: what is free only for a moment then suffices
// for committing it again.
bool can_commit(std::size_t bytes) {
  constexpr std::size_t spare = std::size_t{64} << 20;
  MEMORYSTATUSEX now{};
  now.dwLength = sizeof now;
  return GlobalMemoryStatusEx(&now) != 0 && now.ullAvailPageFile >= bytes + spare;
}

constexpr int most_wait_ms = 1'000;

}  // namespace

std::size_t page_size() { return least_page; }

void* reserve_pages(std::size_t bytes, std::size_t alignment) {
  return reserve(bytes, alignment, MEM_RESERVE | MEM_COMMIT, PAGE_READWRITE);
}

// The space is reserved: others, who come from below, need none behind it.
void* find_free_space(std::size_t bytes, std::size_t alignment, std::size_t) {
  return reserve(bytes, alignment, MEM_RESERVE, PAGE_NOACCESS);
}

bool reserve_pages_at(void* place, std::size_t bytes) {
  const KeptErrors kept;
  const Stretch pages = Stretch::around(place, bytes);
  MEMORY_BASIC_INFORMATION info;
  for (const char* at = pages.begin; at < pages.end; at = static_cast<char*>(info.BaseAddress) + info.RegionSize) {
    if (VirtualQuery(at, &info, sizeof info) == 0 || info.State == MEM_COMMIT) {
      return false;
    }
    if (info.State == MEM_FREE) {
      return VirtualAlloc(pages.begin, pages.bytes(), MEM_RESERVE | MEM_COMMIT, PAGE_READWRITE) != nullptr;
    }
  }
  return commit(pages, PAGE_READWRITE);
}

bool address_space_is_limited() { return false; }

void* reserve_space(std::size_t bytes, std::size_t alignment) {
  return reserve(bytes, alignment, MEM_RESERVE, PAGE_NOACCESS);
}

bool commit_pages(void* pages, std::size_t bytes) { return allow(Stretch::around(pages, bytes), PAGE_READWRITE); }
bool commit_readable_pages(void* pages, std::size_t bytes) {
  return allow(Stretch::around(pages, bytes), PAGE_READONLY);
}

bool protect_pages(void* pages, std::size_t bytes) {
  const KeptErrors kept;
  const Stretch whole = Stretch::within(pages, bytes);
  DWORD before = 0;
  return whole.bytes() == 0 || VirtualProtect(whole.begin, whole.bytes(), PAGE_NOACCESS, &before) != 0;
}

// A reservation goes as a whole; of a part of one, the memory does.
void release_pages(void* pages, std::size_t bytes) {
  const KeptErrors kept;
  const Stretch all = Stretch::around(pages, bytes);
  MEMORY_BASIC_INFORMATION info{};
  char* end = all.begin;
  do {
    end += info.RegionSize;
  } while (end <= all.end && VirtualQuery(end, &info, sizeof info) != 0 && info.AllocationBase == all.begin);
  if (end > all.begin && end <= all.end) {
    VirtualFree(all.begin, 0, MEM_RELEASE);
  } else {
    VirtualFree(all.begin, all.bytes(), MEM_DECOMMIT);
  }
}

bool discard_pages(void* pages, std::size_t bytes) {
  const KeptErrors kept;
  const Stretch whole = Stretch::within(pages, bytes);
  if (whole.bytes() == 0 || !can_commit(whole.bytes()) || VirtualFree(whole.begin, whole.bytes(), MEM_DECOMMIT) == 0) {
    return false;
  }
  // What was charged a moment ago: another process may have taken it, and all else that was free, since.
  for (int waited_ms = 0; !commit(whole, PAGE_READWRITE); ++waited_ms) {
    if (waited_ms == most_wait_ms) {
      say("blockyard: the system has no memory left, and took %zu bytes of the program's\n", whole.bytes());
      std::abort();
    }
    Sleep(1);
  }
  auto* const begin = static_cast<char*>(pages);
  std::memset(begin, 0, static_cast<std::size_t>(whole.begin - begin));
  std::memset(whole.end, 0, static_cast<std::size_t>(begin + bytes - whole.end));
  return true;
}

// Large pages are for processes that may lock memory, and are never swapped: none are asked for.
void advise_huge_pages(void*, std::size_t) {}
void advise_small_pages(void*, std::size_t) {}

std::size_t resident_bytes(const void* pages, std::size_t bytes) {
  constexpr std::size_t at_a_time = 256;
  const KeptErrors kept;
  std::size_t resident = 0;
  PSAPI_WORKING_SET_EX_INFORMATION asked[at_a_time];
  const auto* const begin = static_cast<const char*>(pages);
  for (std::size_t done = 0; done < bytes;) {
    std::size_t count = 0;
    for (; count < at_a_time && done < bytes; ++count, done += least_page) {
      asked[count] = {};
      asked[count].VirtualAddress = const_cast<char*>(begin + done);
    }
    if (K32QueryWorkingSetEx(GetCurrentProcess(), asked, static_cast<DWORD>(count * sizeof asked[0])) == 0) {
      return 0;
    }
    resident += static_cast<std::size_t>(
        std::count_if(asked, asked + count, [](const auto& page) { return page.VirtualAttributes.Valid != 0; }));
  }
  return resident * least_page;
}

std::size_t memory_of_machine() {
  MEMORYSTATUSEX now{};
  now.dwLength = sizeof now;
  return GlobalMemoryStatusEx(&now) != 0 ? static_cast<std::size_t>(now.ullTotalPhys) : ~std::size_t{0};
}

MemoryRoom memory_room(const char*) { return {~std::uint64_t{0}, 0}; }

std::uint64_t monotonic_ns() {
  LARGE_INTEGER count;
  LARGE_INTEGER rate;
  QueryPerformanceCounter(&count);
  QueryPerformanceFrequency(&rate);
  const auto ticks = static_cast<std::uint64_t>(count.QuadPart);
  const auto a_second = static_cast<std::uint64_t>(rate.QuadPart);
  constexpr std::uint64_t second = 1'000'000'000;
  return ticks / a_second * second + ticks % a_second * second / a_second;
}
std::uint64_t program_monotonic_ns() { return monotonic_ns(); }

std::uint64_t thread_time_ns() {
  FILETIME unused;
  FILETIME system;
  FILETIME user;
  GetThreadTimes(GetCurrentThread(), &unused, &unused, &system, &user);
  const auto value = [](const FILETIME& time) { return std::uint64_t{time.dwHighDateTime} << 32 | time.dwLowDateTime; };
  return (value(system) + value(user)) * 100;
}

void* c_allocate(std::size_t alignment, std::size_t bytes) { return _aligned_malloc(bytes, alignment); }
void c_free(void* memory) { _aligned_free(memory); }

void yield_thread() { SwitchToThread(); }

}  // namespace blockyard::base
