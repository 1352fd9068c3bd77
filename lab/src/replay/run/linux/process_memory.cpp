#include "replay/run/process_memory.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>
#include <utility>

#include "journal/event.hpp"

namespace blockyard::replay {
namespace {

constexpr std::size_t huge_page = std::size_t{2} << 20;
constexpr std::size_t main_stack_bytes = std::size_t{256} << 10;

std::size_t page_size() {
  static const auto bytes = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  return bytes;
}

std::size_t round_up(std::size_t bytes, std::size_t to) { return (bytes + to - 1) / to * to; }

[[noreturn]] void out_of_memory(std::size_t bytes) {
  throw journal::Error("the system has no " + std::to_string(bytes >> 20) + " MiB for the replay's own data (" +
                       std::strerror(errno) + "); replay a stretch of the journal, or with fewer threads");
}

// MADV_POPULATE_WRITE reports a lack of memory; touching pages would get the process killed. Kernels before 5.14 only
// have touching.
void populate(char* begin, std::size_t bytes) {
  if (madvise(begin, bytes, MADV_POPULATE_WRITE) == 0) return;
  if (errno == ENOMEM || errno == EFAULT) out_of_memory(bytes);
  for (std::size_t at = 0; at < bytes; at += page_size()) *static_cast<volatile char*>(begin + at) = 0;
}

std::size_t read_small_file(const char* path, char* text, std::size_t room) {
  const int file = open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return 0;
  const ssize_t got = read(file, text, room - 1);
  close(file);
  text[got > 0 ? got : 0] = '\0';
  return got > 0 ? static_cast<std::size_t>(got) : 0;
}

// A stack frame below the caller's: its pages stay populated when it returns.
[[gnu::noinline]] void populate_main_stack() {
  volatile char room[main_stack_bytes];
  for (std::size_t at = 0; at < sizeof room; at += 4096) room[at] = 0;
}

}  // namespace

PopulatedMemory::PopulatedMemory(std::size_t bytes, Pages pages) {
  const bool huge = pages == Pages::huge && bytes >= huge_page;
  const std::size_t alignment = huge ? huge_page : page_size();
  size_ = round_up(bytes == 0 ? 1 : bytes, alignment);
  const std::size_t reserved = huge ? size_ + huge_page : size_;
  void* mapped = mmap(nullptr, reserved, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapped == MAP_FAILED) out_of_memory(size_);
  auto* first = static_cast<char*>(mapped);
  begin_ = reinterpret_cast<char*>(round_up(reinterpret_cast<std::size_t>(first), alignment));
  if (begin_ != first) munmap(first, static_cast<std::size_t>(begin_ - first));
  if (char* end = begin_ + size_; end != first + reserved)
    munmap(end, static_cast<std::size_t>(first + reserved - end));
  if (huge) madvise(begin_, size_, MADV_HUGEPAGE);
  try {
    populate(begin_, size_);
  } catch (...) {
    munmap(begin_, size_);
    throw;
  }
  mlock(begin_, size_);  // best effort: without it, only a machine short of memory would notice
}

PopulatedMemory::~PopulatedMemory() {
  if (begin_ != nullptr) munmap(begin_, size_);
}

PopulatedMemory::PopulatedMemory(PopulatedMemory&& other) noexcept
    : begin_(std::exchange(other.begin_, nullptr)), size_(std::exchange(other.size_, 0)) {}

PopulatedMemory& PopulatedMemory::operator=(PopulatedMemory&& other) noexcept {
  std::swap(begin_, other.begin_);
  std::swap(size_, other.size_);
  return *this;
}

Stack::Stack(std::size_t bytes, std::size_t populated) : size_(round_up(bytes, page_size()) + guard_bytes) {
  void* mapped =
      mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK | MAP_NORESERVE, -1, 0);
  if (mapped == MAP_FAILED) out_of_memory(size_);
  begin_ = static_cast<char*>(mapped);
  mprotect(begin_, guard_bytes, PROT_NONE);
  const std::size_t upper = round_up(populated, page_size());
  populate(begin_ + size_ - upper, upper);
}

Stack::~Stack() {
  if (begin_ != nullptr) munmap(begin_, size_);
}

Stack::Stack(Stack&& other) noexcept
    : begin_(std::exchange(other.begin_, nullptr)), size_(std::exchange(other.size_, 0)) {}

void populate_program() {
  populate_main_stack();
  // The heap is left out: where glibc is the allocator under test, populating it is the allocator's own work.
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    unsigned long long begin = 0;
    unsigned long long end = 0;
    char permissions[5] = {};
    int name_at = 0;
    if (std::sscanf(line.c_str(), "%llx-%llx %4s %*s %*s %*s %n", &begin, &end, permissions, &name_at) < 3) continue;
    const bool is_file = name_at > 0 && static_cast<std::size_t>(name_at) < line.size() &&
                         line[static_cast<std::size_t>(name_at)] == '/';
    if (!is_file || permissions[0] != 'r') continue;
    const bool writable_copy = permissions[1] == 'w' && permissions[3] == 'p';
    madvise(reinterpret_cast<void*>(begin), end - begin, writable_copy ? MADV_POPULATE_WRITE : MADV_POPULATE_READ);
  }
}

std::uint64_t resident_bytes() {
  char text[128];
  if (read_small_file("/proc/self/statm", text, sizeof text) == 0) return 0;
  char* at = text;
  std::strtoull(at, &at, 10);
  return std::strtoull(at, nullptr, 10) * page_size();
}

void reset_peak_resident_bytes() {
  const int file = open("/proc/self/clear_refs", O_WRONLY | O_CLOEXEC);
  if (file < 0) return;
  if (write(file, "5", 1) != 1) {  // then the peak includes the lab's start, which is smaller than any run
  }
  close(file);
}

std::uint64_t peak_resident_bytes() {
  char text[8192];
  if (read_small_file("/proc/self/status", text, sizeof text) == 0) return 0;
  const char* line = std::strstr(text, "VmHWM:");
  return line == nullptr ? 0 : std::strtoull(line + std::strlen("VmHWM:"), nullptr, 10) * 1024;
}

}  // namespace blockyard::replay
