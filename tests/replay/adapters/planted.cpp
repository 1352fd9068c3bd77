/// An allocator for tests that does what the machine or the kernel does to others, at events that a test chooses.
///
/// Options: plant=KIND:N/KIND:N/... does KIND when 1000 + N bytes are asked for, and when the block of 1000 + N - 1
/// bytes is freed: so N is an event's number where a journal's even events allocate and its odd ones free; background=N
/// starts a thread called "planted-bg" that uses N ms of processor time; purge_ms=N has that thread unmap 16 MiB so
/// long after the last free; slept=1 repeats a sleep and a futex wait until the kernel has counted a switch for it: a
/// wait whose time is over before the thread has left its core (the hypervisor had paused it) is none. Kinds:
///   sleep, futex    the thread sleeps 300 us, in nanosleep or in a futex wait that times out
///   fault           one page that is not there is written
///   touched         the block that is returned lies on a page that is not there (16 bytes of it)
///   major           a page of a file that is not in memory is read
///   map, unmap, advise   mmap, munmap, madvise of 1 MiB that nothing was written to
///   migrate         the thread moves to another core
///   work            60 us of the allocator's own work
///
/// All other calls are served from memory that is there, in a few nanoseconds. Before each block lies its size.
#include <fcntl.h>
#include <linux/futex.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <map>
#include <string>
#include <thread>

#include "blockyard/detail/visibility.h"
#include "option.hpp"
#include "support/setup.hpp"

namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t page = 4096;
constexpr std::size_t arena_bytes = std::size_t{64} << 20;
constexpr std::size_t advised_bytes = std::size_t{1} << 20;
constexpr std::size_t purged_bytes = std::size_t{16} << 20;
constexpr std::size_t size_of_first = 1000;
constexpr std::size_t most_plants = 1'000'000;

enum class Plant : std::uint8_t { nothing, sleep, futex, fault, touched, major, map, unmap, advise, migrate, work };
const std::map<std::string, Plant> kinds = {
    {"sleep", Plant::sleep},     {"futex", Plant::futex}, {"fault", Plant::fault}, {"touched", Plant::touched},
    {"major", Plant::major},     {"map", Plant::map},     {"unmap", Plant::unmap}, {"advise", Plant::advise},
    {"migrate", Plant::migrate}, {"work", Plant::work}};

Plant plants[most_plants];
std::atomic<std::uint64_t> arena_used{0};
std::atomic<std::uint64_t> absent_used{0};
std::atomic<std::int64_t> live{0};
std::atomic<std::int64_t> last_free_ns{0};
char* arena = nullptr;
char* absent = nullptr;  // pages that are not there
char* advised = nullptr;
const volatile char* file_page = nullptr;
void* to_unmap = nullptr;
bool until_switched = false;

std::int64_t now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now().time_since_epoch()).count();
}

void* map(std::size_t bytes, int flags) {
  void* mapped = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | flags, -1, 0);
  if (mapped == MAP_FAILED) std::abort();
  return mapped;
}

char* absent_page() { return absent + page * absent_used.fetch_add(1); }

void spin(std::chrono::nanoseconds time) {
  for (const auto end = Clock::now() + time; Clock::now() < end;) {
  }
}

void move_to_another_core() {
  cpu_set_t before;
  sched_getaffinity(0, sizeof before, &before);
  const auto here = static_cast<std::size_t>(sched_getcpu());
  for (std::size_t core = 0; core < CPU_SETSIZE; ++core) {
    if (core == here || !CPU_ISSET(core, &before)) continue;
    cpu_set_t there;
    CPU_ZERO(&there);
    CPU_SET(core, &there);
    sched_setaffinity(0, sizeof there, &there);
    break;
  }
  sched_setaffinity(0, sizeof before, &before);
}

long voluntary_switches() {
  rusage used;
  getrusage(RUSAGE_THREAD, &used);
  return used.ru_nvcsw;
}

template <typename Wait>
void wait_with(Wait wait) {
  if (!until_switched) return wait();
  const long before = voluntary_switches();
  do wait();
  while (voluntary_switches() == before);
}

// What the call's block is, where the plant decides that.
void* carry_out(Plant plant) {
  static std::atomic<std::uint32_t> nobody_wakes{0};
  const timespec time{0, 300'000};
  switch (plant) {
    case Plant::nothing:
      break;
    case Plant::sleep:
      wait_with([&] { nanosleep(&time, nullptr); });
      break;
    case Plant::futex:
      wait_with([&] { syscall(SYS_futex, &nobody_wakes, FUTEX_WAIT_PRIVATE, 0, &time, nullptr, 0); });
      break;
    case Plant::fault:
      *absent_page() = 1;
      break;
    case Plant::touched:
      return absent_page();
    case Plant::major:
      (void)*file_page;
      break;
    case Plant::map:
      map(advised_bytes, MAP_NORESERVE);
      break;
    case Plant::unmap:
      munmap(to_unmap, advised_bytes);
      break;
    case Plant::advise:
      madvise(advised, advised_bytes, MADV_DONTNEED);
      break;
    case Plant::migrate:
      move_to_another_core();
      break;
    case Plant::work:
      spin(std::chrono::microseconds(60));
      break;
  }
  return nullptr;
}

Plant plant_at(std::size_t event) { return plants[event < most_plants ? event : 0]; }

void* allocate_aligned(std::size_t alignment, std::size_t size) {
  live.fetch_add(1, std::memory_order_relaxed);
  void* planted = carry_out(plant_at(size - size_of_first));
  if (planted != nullptr) return planted;
  const std::size_t room = (size + alignment + 15 + 16) / 16 * 16;
  const std::uint64_t at = arena_used.fetch_add(room);
  if (at + room > arena_bytes) return nullptr;
  const auto address = reinterpret_cast<std::uintptr_t>(arena) + at;
  auto* block = reinterpret_cast<std::size_t*>((address + 16 + alignment - 1) & ~(alignment - 1));
  block[-1] = size;
  return block;
}
void* allocate(std::size_t size) { return allocate_aligned(16, size); }

void* reallocate(void* block, std::size_t old_size, std::size_t, std::size_t size) {
  live.fetch_sub(block != nullptr ? 1 : 0, std::memory_order_relaxed);
  void* moved = allocate_aligned(16, size);
  if (moved != nullptr && block != nullptr) std::memcpy(moved, block, old_size < size ? old_size : size);
  return moved;
}

void release(void* block) {
  const bool in_arena = block >= arena && block < arena + arena_bytes;
  if (in_arena) carry_out(plant_at(static_cast<std::size_t*>(block)[-1] - size_of_first + 1));
  if (live.fetch_sub(1, std::memory_order_relaxed) == 1) last_free_ns.store(now_ns());
}

bool plant(const std::string& text) {
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('/', at), text.size());
    const std::size_t colon = text.find(':', at);
    if (colon >= end) return false;
    const auto kind = kinds.find(text.substr(at, colon - at));
    if (kind == kinds.end()) return false;
    plants[std::strtoull(text.c_str() + colon + 1, nullptr, 10) % most_plants] = kind->second;
    at = end + 1;
  }
  return true;
}

// A page of a file that the kernel has written out and dropped.
bool prepare_file(const std::string& path) {
  const int file = open(path.c_str(), O_RDWR | O_CREAT | O_TRUNC, 0600);
  static const char text[page] = {1};
  if (file < 0 || write(file, text, sizeof text) != static_cast<ssize_t>(sizeof text) || fsync(file) != 0) return false;
  posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED);
  file_page = static_cast<const volatile char*>(mmap(nullptr, page, PROT_READ, MAP_PRIVATE, file, 0));
  close(file);
  unlink(path.c_str());
  return file_page != MAP_FAILED;
}

void background(int work_ms, int purge_ms) {
  pthread_setname_np(pthread_self(), "planted-bg");
  timespec used{};
  do {
    spin(std::chrono::milliseconds(1));
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
  } while (used.tv_sec * 1000 + used.tv_nsec / 1'000'000 < work_ms);
  void* purged = purge_ms == 0 ? nullptr : map(purged_bytes, MAP_POPULATE);
  for (;;) {
    usleep(2000);
    const std::int64_t since = last_free_ns.load();
    if (purged == nullptr || since == 0 || live.load() != 0 || now_ns() < since + std::int64_t{purge_ms} * 1'000'000)
      continue;
    munmap(purged, purged_bytes);
    purged = nullptr;
  }
}

int init(const by_adapter_setup* setup) {
  arena = static_cast<char*>(map(arena_bytes, MAP_POPULATE));
  absent = static_cast<char*>(map(arena_bytes, MAP_NORESERVE));
  madvise(absent, arena_bytes, MADV_NOHUGEPAGE);
  advised = static_cast<char*>(map(advised_bytes, MAP_NORESERVE));
  to_unmap = map(advised_bytes, MAP_NORESERVE);
  until_switched = option(*setup, "slept") == "1";
  const std::string file = option(*setup, "file");
  if (!plant(option(*setup, "plant")) || (!file.empty() && !prepare_file(file))) {
    std::strncpy(setup->error, "a plant or its file is not what it should be", setup->error_bytes - 1);
    return 1;
  }
  const std::string work_ms = option(*setup, "background");
  const std::string purge_ms = option(*setup, "purge_ms");
  if (!work_ms.empty() || !purge_ms.empty())
    std::thread(background, std::atoi(work_ms.c_str()), std::atoi(purge_ms.c_str())).detach();
  return 0;
}

constexpr by_adapter adapter = blockyard::adapters::described({
    .name = "planted",
    .version = "1",
    .init = init,
    .allocate = allocate,
    .allocate_zeroed = allocate,
    .allocate_aligned = allocate_aligned,
    .reallocate = reallocate,
    .free = release,
});

}  // namespace

extern "C" BY_API const by_adapter* by_adapter_get() { return &adapter; }
