// heap.h in checked builds: every block is known, poisoned, fenced, and checked when it comes back.
//
// Cost: some microseconds a call, mostly for the stack; 16 bytes and a poisoned tail a block; 2 KiB of records for
// every KiB in use. Bounds hold all the same: no loop here depends on how many blocks there are, but by_heap_check and
// by_arena_destroy.
#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "base/pages.hpp"
#include "base/process.hpp"
#include "base/say.hpp"
#include "base/threads.hpp"
#include "blockyard/heap.h"
#include "checks/poison.hpp"
#include "checks/report.hpp"
#include "checks/stacks.hpp"
#include "heap/api/start.hpp"
#include "heap/checked/blocks.hpp"
#include "heap/checked/plain.hpp"
#include "heap/checked/quarantine.hpp"
#include "heap/front/thread_heap.hpp"
#include "heap/slab_tables.hpp"
#include "pages/injected_failure.hpp"

namespace blockyard::heap::checked {
namespace {

// A block without a guard page has at least this much poison behind it.
constexpr std::size_t tail_bytes = 16;
// Poisoning more would mostly fill memory that nobody reads.
constexpr std::size_t most_poisoned = std::size_t{1} << 20;
// Each guarded block costs two mappings of the 65,530 that a process may have by default.
constexpr std::uint32_t most_guarded = 16'384;
// One small block in so many gets pages of its own and a guard page: 12 KiB and two system calls each.
constexpr unsigned default_sample = 512;

constinit std::atomic<std::uint32_t> guarded_blocks{0};
constinit SharedQuarantine quarantine;
constinit unsigned sample = default_sample;
thread_local unsigned until_sample __attribute__((tls_model("initial-exec"))) = default_sample;

bool wants_guard(std::size_t size) {
  if (size > small_limit) {
    return true;
  }
  // A thread that began before the setting was read counts from the default.
  if (sample == 0 || (--until_sample > 0 && until_sample < sample)) {
    return false;
  }
  until_sample = sample;
  return true;
}

struct Extent {
  unsigned char* plain;
  std::size_t room;  // bytes from `plain` that are the block's, its lead and tail included
};

std::size_t round_up(std::size_t bytes, std::size_t alignment) { return (bytes + alignment - 1) & ~(alignment - 1); }

Extent extent_of(unsigned char* block, const Record& record) {
  unsigned char* const plain = block - record.lead;
  const std::size_t all = by_plain_usable_size(plain);
  return {plain, record.guarded != 0 ? all - base::page_size() : all};
}

// Bytes of poison checked before and behind a block: all that a small block has, and up to a page.
const char* damage(unsigned char* block, const Record& record) {
  const Extent extent = extent_of(block, record);
  const unsigned char* const end = block + record.size;
  const unsigned char* const last = extent.plain + extent.room;
  if (!checks::is_filled(end, std::min(last, end + base::page_size()), checks::around_byte)) {
    return "something was written behind the end of a block";
  }
  const std::size_t before = std::min<std::size_t>(record.lead, base::page_size());
  if (!checks::is_filled(block - before, block, checks::around_byte)) {
    return "something was written before the beginning of a block";
  }
  return nullptr;
}

// A block of its own pages, as near to the guard page behind it as its alignment allows.
unsigned char* allocate_guarded(std::size_t alignment, std::size_t size, Record* known) {
  const std::size_t page = base::page_size();
  const std::size_t pages = std::max(round_up(size, page), 2 * page);  // more than a slab's block
  auto* const plain = static_cast<unsigned char*>(by_plain_aligned_alloc(std::max(alignment, page), pages + page));
  if (plain == nullptr) {
    return nullptr;
  }
  const std::size_t lead = (pages - size) & ~(alignment - 1);
  unsigned char* const block = plain + lead;
  std::memset(block - std::min(lead, page), checks::around_byte, std::min(lead, page));
  std::memset(block + size, checks::around_byte, pages - lead - size);
  known->lead = static_cast<std::uint32_t>(lead);
  known->guarded = 1;
  if (access_fails() || !base::protect_pages(plain + pages, page)) {
    by_plain_free(plain);
    known->lead = known->guarded = 0;
    return nullptr;
  }
  return block;
}

unsigned char* allocate_unguarded(ThreadHeap* arena, std::size_t alignment, std::size_t size) {
  const std::size_t bytes = size + tail_bytes;
  auto* const block = static_cast<unsigned char*>(
      arena == nullptr ? by_plain_aligned_alloc(alignment, bytes)
                       : by_plain_arena_aligned_alloc(reinterpret_cast<by_arena*>(arena), alignment, bytes));
  if (block != nullptr) {
    const std::size_t room = by_plain_usable_size(block);
    std::memset(block + size, checks::around_byte, std::min(room - size, base::page_size()));
  }
  return block;
}

unsigned char* allocate(std::size_t alignment, std::size_t size, ThreadHeap* arena = nullptr) {
  if (!std::has_single_bit(alignment)) {
    errno = EINVAL;
    return nullptr;
  }
  if (!initialise() || size > PTRDIFF_MAX - alignment) {
    errno = ENOMEM;
    return nullptr;
  }
  Record known;
  alignment = std::max(alignment, block_alignment);
  unsigned char* block = nullptr;
  if (arena == nullptr && wants_guard(size) && size <= region.most_bytes && alignment <= chunk_bytes) {
    if (guarded_blocks.fetch_add(1, std::memory_order_relaxed) < most_guarded) {
      block = allocate_guarded(alignment, size, &known);
    }
    if (block == nullptr) {
      guarded_blocks.fetch_sub(1, std::memory_order_relaxed);
    }
  }
  if (block == nullptr && size <= PTRDIFF_MAX - tail_bytes) {
    block = allocate_unguarded(arena, alignment, size);
  }
  if (block == nullptr) {
    errno = ENOMEM;
    return nullptr;
  }
  const int saved = errno;
  known.size = size;
  known.allocated_at = checks::keep_stack();
  known.allocated_by = static_cast<std::uint32_t>(base::thread_id());
  known.arena = arena == nullptr ? std::uint16_t{0} : static_cast<std::uint16_t>(arena->index);
  std::memset(block, checks::fresh_byte, std::min(size, most_poisoned));
  write_record(block, known);
  mark_live(block);
  errno = saved;
  return block;
}

void* allocate_zeroed(std::size_t count, std::size_t size, ThreadHeap* arena) {
  std::size_t bytes = 0;
  if (__builtin_mul_overflow(count, size, &bytes)) {
    errno = ENOMEM;
    return nullptr;
  }
  void* const block = allocate(block_alignment, bytes, arena);
  return block == nullptr ? nullptr : std::memset(block, 0, bytes);
}

// What is wrong with a pointer that is no live block; `doing` begins the sentence.
[[noreturn]] void report_not_live(const char* doing, const void* pointer) {
  char sentence[200];
  const auto say_it = [&](const char* what, const Record* record) {  // does not return
    std::snprintf(sentence, sizeof sentence, "%s %s", doing, what);
    report(sentence, pointer, record);
  };
  if (!region.contains(pointer)) {
    say_it("a pointer that this heap never handed out", nullptr);
  }
  if (const void* const before = live_before(pointer); before != nullptr) {
    const Record& record = record_of(before);
    const auto offset = static_cast<std::size_t>(static_cast<const char*>(pointer) - static_cast<const char*>(before));
    if (offset < std::max<std::size_t>(record.size, 1)) {
      say_it("a pointer into the middle of a block", &record);
    }
  }
  const Record& record = record_of(pointer);
  if (region.offset_of(pointer) % block_alignment == 0 && record.freed_by != 0) {
    say_it("a block that was freed already", &record);
  }
  say_it("a pointer that this heap never handed out", nullptr);
  std::abort();
}

bool is_live_block(const void* pointer) {
  return initialise() && region.contains(pointer) && region.offset_of(pointer) % block_alignment == 0 &&
         is_live(pointer);
}

// A block whose time in quarantine is over goes back to the plain heap. False where the system refuses to make its
// pages accessible, as it may when the process has as many mappings as it can: then the block stays in quarantine.
bool release(const Waiting& waiting) {
  if (waiting.guarded_bytes != 0) {
    if (access_fails() || !base::commit_pages(waiting.plain, waiting.guarded_bytes)) {
      quarantine.stay(waiting);
      return false;
    }
    guarded_blocks.fetch_sub(1, std::memory_order_relaxed);
  }
  if (waiting.poisoned &&
      !checks::is_filled(waiting.block, waiting.block + std::min(waiting.size, most_poisoned), checks::freed_byte)) {
    report("something was written to a block after it was freed", waiting.block, &record_of(waiting.block));
  }
  by_plain_free(waiting.plain);
  quarantine.has_left(waiting);
  return true;
}

void deallocate(void* pointer, const char* doing) {
  if (pointer == nullptr) {
    return;
  }
  if (!is_live_block(pointer)) {
    report_not_live(doing, pointer);
  }
  const int saved = errno;
  auto* const block = static_cast<unsigned char*>(pointer);
  Record& record = record_of(block);
  const Record known = record;
  if (const char* const what = damage(block, known); what != nullptr) {
    report(what, block, &record);
  }
  const Extent extent = extent_of(block, known);
  // Before the block is no longer live, so that a second free finds both; of two that race one finds the other's.
  const std::uint32_t stack = checks::keep_stack();
  if (!mark_freed(block)) {
    report_not_live(doing, pointer);
  }
  record.freed_at = stack;
  record.freed_by = static_cast<std::uint32_t>(base::thread_id());
  Waiting waiting{extent.plain, block, known.size, 0, true, known.arena != 0};
  if (known.guarded != 0) {
    waiting.guarded_bytes = extent.room + base::page_size();
    const bool taken_away = !access_fails() && base::protect_pages(extent.plain, extent.room);
    // A refusal may have come when a part was taken away.
    waiting.poisoned = !taken_away && base::commit_pages(extent.plain, extent.room);
  }
  if (waiting.poisoned) {
    std::memset(block, checks::freed_byte, std::min(known.size, most_poisoned));
  }
  Waiting old = quarantine.enter(waiting);
  while (old.plain != nullptr && release(old)) {
    old = quarantine.enter({});
  }
  errno = saved;
}

void empty_quarantine() {
  for (std::size_t left = quarantine.count(); left > 0; --left) {
    if (const Waiting old = quarantine.leave(); old.plain != nullptr) {
      release(old);
    }
  }
}

void* reallocate(void* pointer, std::size_t size) {
  if (pointer == nullptr) {
    return allocate(block_alignment, size);
  }
  if (!is_live_block(pointer)) {
    report_not_live("realloc of", pointer);
  }
  // Always elsewhere: whoever keeps the old pointer finds out.
  unsigned char* const moved = allocate(block_alignment, size);
  if (moved != nullptr) {
    std::memcpy(moved, pointer, std::min<std::size_t>(size, record_of(pointer).size));
    deallocate(pointer, "realloc of");
  }
  return moved;
}

void destroy(by_arena* heap) {
  if (heap == nullptr) {
    return;
  }
  // Nothing of it may wait, nor be on its way back from there in another thread, and nothing of it is live any more.
  empty_quarantine();
  quarantine.wait_until_all_have_left();
  for_each_live(
      [](const void* block, void* context) {
        if (arena_of(block) == static_cast<ThreadHeap*>(context)->index) {
          Record& record = record_of(block);
          record.freed_at = checks::keep_stack();
          record.freed_by = static_cast<std::uint32_t>(base::thread_id());
          mark_freed(block);
        }
      },
      heap);
  by_plain_arena_destroy(heap);
}

const char* check() {
  if (const char* const broken = by_plain_check(); broken != nullptr || !initialise()) {
    return broken;
  }
  const char* found = nullptr;
  for_each_live(
      [](const void* block, void* context) {
        auto* const live = static_cast<unsigned char*>(const_cast<void*>(block));
        if (const char* const what = damage(live, record_of(live)); what != nullptr) {
          *static_cast<const char**>(context) = what;
        }
      },
      &found);
  return found;
}

// What was touched where the program ran into a guard page or a freed guarded block.
void report_access(const void* address) {
  if (const void* const block = live_before(address); block != nullptr) {
    const Record& record = record_of(block);
    const auto* const plain = static_cast<const char*>(block) - record.lead;
    if (record.guarded != 0 && address < plain + by_plain_usable_size(plain)) {  // the guard page is its last
      report("a guard page was touched: beyond the end of a block", address, &record);
    }
  }
  // A freed guarded block begins somewhere before, on this page or one of its pages.
  const auto* unit = static_cast<const char*>(address) - region.offset_of(address) % block_alignment;
  for (std::size_t looked = 0; looked < std::size_t{1} << 16 && unit > region.base; ++looked, unit -= block_alignment) {
    const Record& record = record_of(unit);
    if (record.freed_by != 0 && record.guarded != 0) {
      report("a block was touched after it was freed", address, &record);
    }
  }
  report("a page of the heap was touched that nobody may touch", address, nullptr);
}

[[gnu::constructor]] void start() {
  initialise();
  if (std::uint64_t asked = 0; base::read_number("BLOCKYARD_HEAP_GUARD_SAMPLE", 0, 1'000'000'000, &asked)) {
    sample = until_sample = static_cast<unsigned>(asked);
  }
  std::uint64_t with_stacks = 1;
  if (!base::read_number("BLOCKYARD_HEAP_STACKS", 0, 1, &with_stacks) || with_stacks != 0) {
    checks::start_stacks();
    checks::start_stack_table();
  }
  base::report_forbidden_accesses([](const void* address) { return region.contains(address); }, report_access);
  base::around_fork([] { quarantine.lock.lock(); }, [] { quarantine.lock.unlock(); },
                    [] {
                      quarantine.forget_leaving();
                      quarantine.lock.unlock();
                    });
}

}  // namespace
}  // namespace blockyard::heap::checked

namespace checked = blockyard::heap::checked;
using blockyard::heap::block_alignment;
using blockyard::heap::ThreadHeap;

extern "C" {

void* by_malloc(size_t size) { return checked::allocate(block_alignment, size); }
void by_free(void* block) { checked::deallocate(block, "free of"); }
void by_free_sized(void* block, size_t size) {
  if (block != nullptr && checked::is_live_block(block) && checked::record_of(block).size != size) {
    checked::report("free_sized with a size other than was asked for", block, &checked::record_of(block));
  }
  checked::deallocate(block, "free of");
}

void* by_calloc(size_t count, size_t size) { return checked::allocate_zeroed(count, size, nullptr); }

void* by_realloc(void* block, size_t size) { return checked::reallocate(block, size); }
void* by_aligned_alloc(size_t alignment, size_t size) { return checked::allocate(alignment, size); }

size_t by_usable_size(const void* block) {
  if (block == nullptr) {
    return 0;
  }
  if (!checked::is_live_block(block)) {
    checked::report_not_live("size asked of", block);
  }
  return checked::record_of(block).size;
}

void by_arena_free(by_arena*, void* block) { checked::deallocate(block, "free of"); }
void by_arena_destroy(by_arena* heap) { checked::destroy(heap); }
void* by_arena_alloc(by_arena* heap, size_t size) {
  return checked::allocate(block_alignment, size, reinterpret_cast<ThreadHeap*>(heap));
}
void* by_arena_calloc(by_arena* heap, size_t count, size_t size) {
  return checked::allocate_zeroed(count, size, reinterpret_cast<ThreadHeap*>(heap));
}
void* by_arena_aligned_alloc(by_arena* heap, size_t alignment, size_t size) {
  return checked::allocate(alignment, size, reinterpret_cast<ThreadHeap*>(heap));
}

const char* by_heap_check(void) { return checked::check(); }

}  // extern "C"
