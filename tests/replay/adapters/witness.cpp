/// An allocator for tests: it records every call that a replay makes, and misbehaves on request.
///
/// Options: log=PATH (rows of Call, in the order of the calls), slow_us=N (each allocation takes so long), and one of
/// fail_at, crash_at, abort_at, hang_at=N (the N-th call of all, from 0), refuse=1 (does not start), break=overlap |
/// contents | zero | alignment (a broken allocator; overlap: all blocks of 40 bytes are one). Compiled with FLAGS=...,
/// and with WRONG_ABI or INCOMPLETE.
///
/// Each block lies in memory of its own, 16 bytes before a page's end, so that a free sees which bytes and pages of it
/// were written; nothing comes from the process's malloc.
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "blockyard/adapter.h"
#include "blockyard/detail/visibility.h"
#include "option.hpp"

#ifndef FLAGS
#define FLAGS 0
#endif

namespace {

struct Call {
  char what;  ///< m, z, a, r, f; s: thread_start, e: thread_stop
  char padding[3];
  std::uint32_t thread;  ///< kernel thread id
  std::uint64_t size;
  std::uint64_t alignment;
  std::uint64_t old_size;
  std::uint64_t block;  ///< given or freed
  std::uint64_t old_block;
  std::uint64_t pages_written;  ///< of a freed block
  std::uint64_t bytes_written;  ///< of a freed block: not 0
  std::uint64_t inside;         ///< calls in progress, this one included
  std::uint64_t mallocs;        ///< calls of the process's malloc family so far, where they are counted
};
static_assert(sizeof(Call) == 80);

constexpr std::size_t page = 4096;
constexpr std::size_t most_calls = 100'000;

// Stands at the beginning of the page before the block's first.
struct Header {
  void* mapping;
  std::size_t mapped;
  std::size_t size;
};

Call* calls = nullptr;
std::atomic<std::uint64_t> call_count{0};
std::atomic<std::uint64_t> inside{0};
std::uint64_t slow_us = 0;
std::uint64_t fail_at = ~std::uint64_t{0};
std::uint64_t crash_at = fail_at;
std::uint64_t abort_at = fail_at;
std::uint64_t hang_at = fail_at;
std::string broken;
std::atomic<void*> shared_block{nullptr};
std::uint64_t (*count_mallocs)() = nullptr;

std::uint64_t number(const by_adapter_setup& setup, const std::string& key, std::uint64_t otherwise) {
  const std::string text = option(setup, key);
  return text.empty() ? otherwise : std::strtoull(text.c_str(), nullptr, 10);
}

char* begin_of(void* block) {
  return reinterpret_cast<char*>(reinterpret_cast<std::uintptr_t>(block) & ~(page - 1)) - page;
}

void* map(std::size_t alignment, std::size_t size) {
  if (broken == "overlap" && shared_block != nullptr && size == 40) return shared_block;
  const std::size_t from_page_end = alignment <= 16 ? 16 : 0;
  if (size > (std::size_t{1} << 40)) return nullptr;
  const std::size_t room = size + alignment + 4 * page;
  void* mapped = mmap(nullptr, room, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapped == MAP_FAILED) return nullptr;
  auto address = reinterpret_cast<std::uintptr_t>(mapped) + 2 * page;
  if (from_page_end != 0) {
    address += page - from_page_end;
  } else {
    address = (address + alignment - 1) & ~(alignment - 1);
  }
  if (broken == "alignment" && alignment > 16) address += 16;
  void* block = reinterpret_cast<void*>(address);
  auto* header = reinterpret_cast<Header*>(begin_of(block));
  header->mapping = mapped;
  header->mapped = room;
  header->size = size;
  void* nobody = nullptr;
  shared_block.compare_exchange_strong(nobody, block);
  return block;
}

void count_written(Call& call, void* block) {
  const std::size_t size = reinterpret_cast<Header*>(begin_of(block))->size;
  const auto* bytes = static_cast<const unsigned char*>(block);
  std::uintptr_t last_page = 0;
  for (std::size_t at = 0; at < size; ++at) {
    if (bytes[at] == 0) continue;
    ++call.bytes_written;
    const std::uintptr_t in_page = reinterpret_cast<std::uintptr_t>(bytes + at) / page;
    if (in_page != last_page) ++call.pages_written;
    last_page = in_page;
  }
}

std::uint64_t begin_call() {
  const std::uint64_t index = call_count.fetch_add(1);
  if (index == crash_at) *static_cast<volatile int*>(nullptr) = 1;
  if (index == abort_at) std::abort();
  if (index == hang_at) {
    for (;;) pause();
  }
  return index;
}

Call start(char what) {
  Call call{};
  call.what = what;
  call.thread = static_cast<std::uint32_t>(gettid());
  call.inside = inside.fetch_add(1) + 1;
  call.mallocs = count_mallocs == nullptr ? 0 : count_mallocs();
  return call;
}

void finish(const Call& call, std::uint64_t index) {
  if (slow_us != 0 && call.what != 'f') usleep(static_cast<useconds_t>(slow_us));
  inside.fetch_sub(1);
  if (calls != nullptr && index < most_calls) calls[index] = call;
}

void* give(char what, std::size_t alignment, std::size_t size) {
  Call call = start(what);
  const std::uint64_t index = begin_call();
  call.size = size;
  call.alignment = alignment;
  void* block = index == fail_at ? nullptr : map(alignment, size);
  if (what == 'z' && broken == "zero" && size != 0) *static_cast<char*>(block) = 1;
  call.block = reinterpret_cast<std::uintptr_t>(block);
  finish(call, index);
  return block;
}

void* allocate(std::size_t size) { return give('m', 16, size); }
void* allocate_zeroed(std::size_t size) { return give('z', 16, size); }
void* allocate_aligned(std::size_t alignment, std::size_t size) { return give('a', alignment, size); }

void unmap(void* block) {
  if (block == nullptr || (broken == "overlap" && block == shared_block)) return;
  const Header header = *reinterpret_cast<Header*>(begin_of(block));
  munmap(header.mapping, header.mapped);
}

void* reallocate(void* block, std::size_t old_size, std::size_t old_alignment, std::size_t size) {
  Call call = start('r');
  const std::uint64_t index = begin_call();
  call.size = size;
  call.alignment = old_alignment;
  call.old_size = old_size;
  call.old_block = reinterpret_cast<std::uintptr_t>(block);
  void* moved = index == fail_at ? nullptr : map(16, size);
  if (moved != nullptr && block != nullptr) {
    if (broken != "contents") std::memcpy(moved, block, std::min(old_size, size));
    unmap(block);
  }
  call.block = reinterpret_cast<std::uintptr_t>(moved);
  finish(call, index);
  return moved;
}

void release_as(void* block, std::size_t size, std::size_t alignment) {
  Call call = start('f');
  const std::uint64_t index = begin_call();
  call.size = size;
  call.alignment = alignment;
  call.block = reinterpret_cast<std::uintptr_t>(block);
  if (block != nullptr) {
    count_written(call, block);
    unmap(block);
  }
  finish(call, index);
}
void release(void* block) { release_as(block, 0, 0); }

void thread_start() { finish(start('s'), begin_call()); }
void thread_stop() { finish(start('e'), begin_call()); }

int init(const by_adapter_setup* setup) {
  if (!option(*setup, "refuse").empty()) {
    std::snprintf(setup->error, setup->error_bytes, "the pool of %llu bytes is closed today",
                  static_cast<unsigned long long>(setup->pool_bytes));
    return 1;
  }
  slow_us = number(*setup, "slow_us", 0);
  fail_at = number(*setup, "fail_at", fail_at);
  crash_at = number(*setup, "crash_at", crash_at);
  abort_at = number(*setup, "abort_at", abort_at);
  hang_at = number(*setup, "hang_at", hang_at);
  broken = option(*setup, "break");
  count_mallocs = reinterpret_cast<std::uint64_t (*)()>(dlsym(RTLD_DEFAULT, "counted_mallocs"));
  const std::string log = option(*setup, "log");
  if (log.empty()) return 0;
  const int file = open(log.c_str(), O_RDWR | O_CREAT | O_TRUNC, 0666);
  if (file < 0 || ftruncate(file, most_calls * sizeof(Call)) != 0) return 1;
  void* mapped = mmap(nullptr, most_calls * sizeof(Call), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  close(file);
  if (mapped == MAP_FAILED) return 1;
  calls = static_cast<Call*>(mapped);
  return 0;
}

#ifdef WRONG_ABI
constexpr std::uint32_t abi = BY_ADAPTER_ABI + 1;
#else
constexpr std::uint32_t abi = BY_ADAPTER_ABI;
#endif

#ifdef INCOMPLETE
constexpr bool incomplete = true;
#else
constexpr bool incomplete = false;
#endif

const by_adapter adapter = {
    .abi = abi,
    .flags = FLAGS,
    .name = "witness",
    .version = "1",
    .init = init,
    .thread_start = thread_start,
    .thread_stop = thread_stop,
    .allocate = allocate,
    .allocate_zeroed = allocate_zeroed,
    .allocate_aligned = allocate_aligned,
    .reallocate = incomplete ? nullptr : reallocate,
    .free = release,
    .free_sized = release_as,
};

}  // namespace

extern "C" BY_API const by_adapter* by_adapter_get() { return &adapter; }
