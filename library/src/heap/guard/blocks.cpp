#include "heap/guard/guard.hpp"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <new>

#include "base/bits.hpp"
#include "base/pages.hpp"
#include "base/process.hpp"
#include "checks/quarantine.hpp"
#include "checks/report.hpp"
#include "checks/sampler.hpp"
#include "checks/watched.hpp"
#include "heap/background/background_thread.hpp"
#include "heap/background/maintenance.hpp"
#include "heap/front/heap_table.hpp"
#include "heap/front/large_blocks.hpp"
#include "heap/front/small_blocks.hpp"
#include "heap/guard/marks.hpp"
#include "heap/pages/page_allocator.hpp"
#include "heap/settings.hpp"
#include "pages/injected_failure.hpp"

namespace blockyard::heap::guard {

namespace {

// Of a checked build. Filling more would mostly touch memory that nobody reads.
constexpr std::size_t most_filled = std::size_t{1} << 20;
// Each guarded block costs two mappings of the 65,530 that a process may have by default.
constexpr std::uint32_t most_guarded = 16'384;
constinit std::atomic<std::uint32_t> guarded_blocks{0};

// A block in quarantine, or none: of whole pages where the class is one of the two that small blocks do not have.
constexpr unsigned untouchable_run = class_count;
constexpr unsigned filled_run = class_count + 1;
class WaitingBlock {
 public:
  WaitingBlock() = default;
  WaitingBlock(const void* begin, unsigned size_class)
      : word_(reinterpret_cast<std::uintptr_t>(begin) << class_bits | size_class) {}
  bool is_empty() const { return word_ == 0; }
  unsigned size_class() const { return static_cast<unsigned>(word_ & ((1u << class_bits) - 1)); }
  char* begin() const { return reinterpret_cast<char*>(word_ >> class_bits); }
  Block block() const { return {begin(), size_class(), false}; }

 private:
  static constexpr unsigned class_bits = 8;  // addresses have fewer than the other 56
  std::uintptr_t word_ = 0;
};

// The blocks that a thread freed last.
struct ThreadQuarantine {
  // More of them would be found cold when they leave, fewer would miss more.
  static constexpr unsigned largest_small = class_of(2048);

  WaitingBlock exchange(const WaitingBlock& newest) {
    return newest.size_class() <= largest_small ? small.exchange(newest) : larger.exchange(newest);
  }

  checks::LastOnes<WaitingBlock, 64> small;
  checks::LastOnes<WaitingBlock, 8> larger;
  // Of a checked build, in place of both.
  static constexpr std::size_t most_blocks = 1024;
  static constexpr std::size_t most_bytes = std::size_t{16} << 20;
  checks::Quarantine<WaitingBlock> all;
  std::size_t bytes = 0;
};
static_assert(sizeof(ThreadQuarantine) <= page_bytes);

// What a checked build knows of a block, in a flat table over the region for each 16 bytes, where blocks may begin;
// memory is used only where they do. It stays after the free, until another block begins there: a second free finds
// where the first one was.
struct Record {
  std::uint64_t size = 0;          // bytes asked for
  std::uint32_t allocated_at = 0;  // stack
  std::uint32_t freed_at = 0;      // stack
  std::uint32_t allocated_by = 0;  // thread; 0: none ever began here
  std::uint32_t freed_by = 0;      // thread; 0 while it is live
};
static_assert(record_bytes == 0 || record_bytes == sizeof(Record));
Record& record_of(const void* begin) {
  return reinterpret_cast<Record*>(region.tables[5].base)[region.offset_of(begin) / block_alignment];
}

// With what is known of the block that begins, or began, at `begin`; null: of none.
[[noreturn, gnu::cold]] void report(const char* what, const void* pointer, const void* begin) {
  if (!thorough || begin == nullptr || record_of(begin).allocated_by == 0) {
    checks::report_fault(what, pointer);
  }
  const Record& record = record_of(begin);
  const checks::Known known{begin,
                            record.size,
                            {record.allocated_by, checks::kept_stack(record.allocated_at)},
                            {record.freed_by, checks::kept_stack(record.freed_at)}};
  checks::report_fault(what, pointer, &known);
}
// `doing` begins the sentence.
[[noreturn, gnu::cold]] void report(const char* doing, const char* what, const void* pointer, const void* begin) {
  char sentence[100];
  std::snprintf(sentence, sizeof sentence, "%s %s", doing, what);
  report(sentence, pointer, begin);
}
constexpr char foreign[] = "a pointer that this heap never handed out";
constexpr char inside[] = "a pointer into the middle of a block";
constexpr char freed_already[] = "a block that was freed already";

void note_allocated(const void* begin, std::size_t size) {
  record_of(begin) = {size, checks::keep_stack(), 0, static_cast<std::uint32_t>(base::thread_id()), 0};
}
// Reports it if it was noted before, perhaps by a thread that frees the block at the same moment.
void note_freed(const void* begin) {
  Record& record = record_of(begin);
  const std::uint32_t stack = checks::keep_stack();
  if (std::atomic_ref(record.freed_by).exchange(static_cast<std::uint32_t>(base::thread_id())) != 0) {
    report("free of", freed_already, begin, begin);
  }
  record.freed_at = stack;
}

// The small block of a thread's slab that begins at `pointer`, if one does. `owner` is that of its slice.
struct Found {
  Found(const void* pointer, std::size_t slice, Owner owner)
      : begin(static_cast<char*>(const_cast<void*>(pointer))),
        size_class(owner.size_class()),
        distance(static_cast<std::uint32_t>(begin - region.slice_address(slice - owner.back()))) {}
  bool is_block() const { return is_multiple(distance, class_inverse(size_class)); }
  Block block() const { return {begin, size_class, distance != 0}; }
  const char* begin_of_block() const { return begin - distance % class_bytes(size_class); }

  char* begin;
  unsigned size_class;
  std::uint32_t distance;
};

[[noreturn]] void report_touched(const void* freed) {
  report("something was written to a block after it was freed", freed, freed);
}

template <std::uint32_t most>
void check(const checks::LastOnes<WaitingBlock, most>& last) {
  for (const WaitingBlock& freed : last.waiting) {
    if (!freed.is_empty() && !is_untouched(freed.block())) {
      report_touched(freed.begin());
    }
  }
}

[[gnu::noinline]] ThreadQuarantine* make_quarantine(ThreadHeap* heap) {
  void* const room = take_run(sizeof(ThreadQuarantine), page_bytes, nullptr, nullptr);
  if (room != nullptr) {
    heap->quarantine = new (room) ThreadQuarantine;
    region.pages[region.page_of(room)].flags |= page_cached;  // no program may free it
  }
  return static_cast<ThreadQuarantine*>(heap->quarantine);
}

// Null: the thread has no heap, or there is no memory.
[[gnu::always_inline]] inline ThreadQuarantine* quarantine_of(ThreadHeap* heap) {
  auto* const waiting = static_cast<ThreadQuarantine*>(heap->quarantine);
  return waiting != nullptr || heap == &empty_heap ? waiting : make_quarantine(heap);
}

// A block of whole pages. In a checked build it lies as near to its end as its alignment allows, and behind it a page
// that nobody may touch: `next` in its tag, where arenas have a link, says how many bytes come before it. Else it says
// how many behind it were not asked for.
class Run {
 public:
  explicit Run(std::uint32_t page) : page_(page) {}
  // The one that holds an address in no slab; page 0: none does. O(its pages), 1 for where it may begin.
  static Run around(const void* pointer) {
    auto page = static_cast<std::uint32_t>(region.page_of(pointer));
    const auto state = [&] { return region.pages[page].state; };
    while (page != 0 && state() == PageState::inner) {
      --page;
    }
    return Run(state() == PageState::used_block ? page : 0);
  }

  PageTag& tag() const { return region.pages[page_]; }
  bool is_of_arena() const { return (tag().flags & page_of_arena) != 0; }
  bool is_guarded() const { return (tag().flags & page_guarded) != 0; }
  bool is_live() const { return page_ != 0 && is_live_run(plain()); }
  char* plain() const { return region.page_address(page_); }
  char* begin() const { return plain() + (thorough && !is_of_arena() ? tag().next : 0); }
  char* end() const { return plain() + run_bytes(plain()) - (is_guarded() ? base::page_size() : 0); }
  std::size_t size() const {
    return thorough ? record_of(begin()).size : run_bytes(plain()) - (is_of_arena() ? 0 : tag().next);
  }
  // What was written around it; null: nothing.
  const char* damage() const {
    if (!is_filled(begin() + size(), end())) {
      return written_behind;
    }
    const char* const before = begin() - std::min(static_cast<std::size_t>(begin() - plain()), base::page_size());
    return checks::is_filled(before, begin(), checks::around_byte) ? nullptr : written_before;
  }

 private:
  std::uint32_t page_;
};

// The live block of whole pages that begins at `pointer`, or the report that none does or what is wrong with it.
Run sound_run(const char* doing, const void* pointer) {
  const Run run = Run::around(pointer);
  if (run.is_live() && run.begin() == pointer) {
    if (const char* const what = run.damage(); what != nullptr) {
      report(what, pointer, pointer);
    }
    return run;
  }
  if (run.is_live()) {
    report(doing, inside, pointer, run.begin());
  }
  const bool was_one = thorough && region.offset_of(pointer) % block_alignment == 0 && record_of(pointer).freed_by != 0;
  report(doing, was_one ? freed_already : thorough ? foreign : "a pointer that is no live block", pointer, pointer);
}

// Takes it out of quarantine; false where the system refuses to make its pages accessible, as it may when the process
// has as many mappings as it can.
bool release_run(const WaitingBlock& freed) {
  const Run run = Run::around(freed.begin());
  if (run.is_guarded()) {
    if (access_fails() || !base::commit_pages(run.plain(), run_bytes(run.plain()))) {
      return false;
    }
    guarded_blocks.fetch_sub(1, std::memory_order_relaxed);
  }
  const std::size_t filled = std::min(run.size(), most_filled);
  if (freed.size_class() == filled_run &&
      !checks::is_filled(freed.begin(), freed.begin() + filled, checks::freed_byte)) {
    report_touched(freed.begin());
  }
  run.tag().flags &= static_cast<std::uint8_t>(~(page_cached | page_guarded));
  free_run(run.plain());
  return true;
}

bool release(const WaitingBlock& freed) {
  if (thorough && freed.size_class() >= class_count) {
    return release_run(freed);
  }
  const Block leaves = freed.block();
  if (!is_untouched(leaves)) [[unlikely]] {
    report_touched(leaves.begin);
  }
  free_small(heap_behind_guard, leaves.begin, CacheSlot::of_class(leaves.size_class));
  return true;
}

std::size_t bytes_of(const WaitingBlock& freed) {
  return freed.size_class() < class_count ? class_bytes(freed.size_class()) : Run::around(freed.begin()).size();
}

// A block that can't leave waits on, as the newest.
void put_into_all(ThreadQuarantine* waiting, const WaitingBlock& newest) {
  if (waiting == nullptr || !waiting->all.push(newest)) {
    release(newest);
    return;
  }
  waiting->bytes += bytes_of(newest);
  while (waiting->all.count() > ThreadQuarantine::most_blocks || waiting->bytes > ThreadQuarantine::most_bytes) {
    const WaitingBlock oldest = waiting->all.pop();
    const std::size_t bytes = bytes_of(oldest);
    if (!release(oldest)) {
      waiting->all.push(oldest);
      return;
    }
    waiting->bytes -= bytes;
  }
}

[[gnu::always_inline]] inline void put_into_quarantine(const WaitingBlock& newest) {
  if (thorough && heap_behind_guard == &empty_heap && !HeapTable::thread_has_left()) {
    process_heaps.enter_thread();  // it had none, as long as all its blocks were of whole pages
  }
  ThreadQuarantine* const waiting = quarantine_of(heap_behind_guard);
  if (thorough) {
    put_into_all(waiting, newest);
    return;
  }
  const WaitingBlock oldest = waiting != nullptr ? waiting->exchange(newest) : newest;
  if (!oldest.is_empty()) [[likely]] {
    release(oldest);
  }
}

void* allocate_guarded(ThreadHeap* heap, std::size_t size, std::size_t alignment) {
  const unsigned size_class =
      alignment <= block_alignment ? class_of(size + canary_bytes) : aligned_class(alignment, size + canary_bytes);
  if (size_class == class_count) {
    return nullptr;
  }
  void* block = from_cache(heap, CacheSlot::of_class(size_class));
  if (block == nullptr) [[unlikely]] {
    block = refill_and_take(heap, size_class);
  }
  if (block != nullptr) {
    write_canary({static_cast<char*>(block), size_class, false}, size);
  }
  return block;
}

// Of a checked build: with a guard page, as long as there are not too many.
void* allocate_on_own_pages(std::size_t size, std::size_t alignment) {
  const std::size_t page = base::page_size();
  const std::size_t room = std::max(base::align_up(size, page), 2 * page);
  if (size >= region.most_bytes) {
    return nullptr;
  }
  if (guarded_blocks.fetch_add(1, std::memory_order_relaxed) < most_guarded) {
    auto* const plain = static_cast<char*>(take_run(room + page, std::max(alignment, page), nullptr, nullptr));
    if (plain != nullptr && !access_fails() && base::protect_pages(plain + room, page)) {
      char* const begin = plain + ((room - size) & ~(alignment - 1));
      PageTag& tag = region.pages[region.page_of(plain)];
      tag.flags |= page_guarded;
      tag.next = static_cast<std::uint32_t>(begin - plain);
      write_fill(begin - std::min<std::size_t>(tag.next, page), begin);
      write_fill(begin + size, plain + room);
      return begin;
    }
    if (plain != nullptr) {
      free_run(plain);
    }
  }
  guarded_blocks.fetch_sub(1, std::memory_order_relaxed);
  return nullptr;
}

// Of a block without a guard page; an arena's has its link in the tag.
void mark_run(void* block, std::size_t size, const ThreadHeap* arena) {
  char* const begin = static_cast<char*>(block);
  const std::size_t bytes = run_bytes(block);
  if (arena == nullptr) {
    region.pages[region.page_of(block)].next = thorough ? 0 : static_cast<std::uint32_t>(bytes - size);
  }
  write_fill(begin + size, begin + bytes);
}

void* allocate_run(std::size_t size, std::size_t alignment, bool* zeroed, ThreadHeap* arena) {
  void* block = thorough && arena == nullptr ? allocate_on_own_pages(size, alignment) : nullptr;
  if (block == nullptr) {
    block = take_run(std::max(size, small_limit + 1), alignment, zeroed, arena);
    if (block != nullptr) {
      mark_run(block, size, arena);
    }
  }
  return block;
}

[[gnu::noinline]] void free_run_or_arena(void* pointer, Owner owner) {
  if (owner.heap() != 0) {
    free_remote(pointer);
    return;
  }
  const Run run = sound_run("free of", pointer);
  if (thorough) {
    note_freed(pointer);
  }
  if (!thorough || run.is_of_arena()) {
    free_run(run.plain());
    tend_background_thread();
    return;
  }
  run.tag().flags |= page_cached;
  const auto bytes = static_cast<std::size_t>(run.end() - run.plain());
  const bool untouchable = run.is_guarded() && !access_fails() && base::protect_pages(run.plain(), bytes);
  // A refusal may have come when a part was taken away.
  if (!untouchable && (!run.is_guarded() || base::commit_pages(run.plain(), bytes))) {
    std::memset(run.begin(), checks::freed_byte, std::min(run.size(), most_filled));
    put_into_quarantine({pointer, filled_run});
  } else {
    put_into_quarantine({pointer, untouchable_run});
  }
}

void* try_to_allocate(std::size_t size, std::size_t alignment, bool* zeroed, ThreadHeap* arena) {
  bool own_pages = false;
  if (thorough) {
    // In no step with what the program does: each product is somewhere else.
    static constinit thread_local std::uint32_t count __attribute__((tls_model("initial-exec"))) = 0;
    own_pages = arena == nullptr && settings.guard_sample != 0 &&
                ++count * 0x9E3779B1u < ~std::uint32_t{0} / settings.guard_sample;
  } else if (checks::wants_sample()) [[unlikely]] {
    if (void* const block = checks::allocate_sampled(size, std::max(alignment, block_alignment)); block != nullptr) {
      return block;
    }
  }
  if (size <= small_limit - canary_bytes && alignment <= small_limit && !own_pages) {
    ThreadHeap* const heap = arena != nullptr ? arena : heap_behind_guard;
    if (void* const block = allocate_guarded(heap, size, alignment); block != nullptr) {
      return block;
    }
  }
  return allocate_run(size, std::max(alignment, block_alignment), zeroed, arena);
}

// Bytes asked for of that block; reports what is none.
[[gnu::always_inline]] inline std::size_t sound_block(const char* doing, const Found& found) {
  if (!found.is_block()) [[unlikely]] {
    report(doing, inside, found.begin, found.begin_of_block());
  }
  const std::size_t size = size_if_intact(found.block());
  if (size == not_intact) [[unlikely]] {
    const char* const what = fault_of(found.block());
    what != nullptr ? report(what, found.begin, found.begin) : report(doing, freed_already, found.begin, found.begin);
  }
  return size;
}

std::size_t sound_size(const char* doing, const void* pointer) {
  if (checks::is_sampled(pointer)) {
    return checks::sampled_bytes(pointer);
  }
  if (!region.contains(pointer)) {
    report(doing, foreign, pointer, nullptr);
  }
  const std::size_t slice = region.slice_of(pointer);
  const Owner owner = region.owner_of(slice);
  if (owner.heap() == 0) {
    return sound_run(doing, pointer).size();
  }
  if (owner.is_arena() && !thorough) {
    return class_bytes(owner.size_class());
  }
  return sound_block(doing, {pointer, slice, owner});
}

#if BLOCKYARD_CHECKED
// What was touched where the program ran into a guard page or a freed guarded block.
void report_access(const void* address) {
  const Run run = Run::around(address);
  if (run.is_live() && run.is_guarded()) {
    report("a guard page was touched: beyond the end of a block", address, run.begin());
  }
  if (run.plain() != region.base && run.is_guarded()) {
    report("a block was touched after it was freed", address, run.begin());
  }
  report("a page of the heap was touched that nobody may touch", address, nullptr);
}
#endif

}  // namespace

bool start() {
  canary_key = (link_key << canary_told_bits) | canary_first_byte;
#if BLOCKYARD_CHECKED
  return true;
#else
  return checks::start_sampler(settings.guard_sample);
#endif
}

void start_reports() {
#if BLOCKYARD_CHECKED
  if (base::read_number("BLOCKYARD_HEAP_STACKS", 0, 1) != 0) {
    checks::start_stacks();
    checks::start_stack_table();
  }
  base::report_forbidden_accesses([](const void* address) { return region.contains(address); }, report_access);
#else
  checks::start_trap();
#endif
}

void check_quarantine() {
  if (auto* const waiting = static_cast<ThreadQuarantine*>(heap_behind_guard->quarantine); waiting != nullptr) {
    check(waiting->small);
    check(waiting->larger);
    while (waiting->all.count() != 0 && release(waiting->all.pop())) {
    }
  }
}

void* allocate_small(std::size_t size) {
  if (!thorough && size <= looked_up_limit - canary_bytes && checks::until_sample != 1) [[likely]] {
    const CacheSlot slot = CacheSlot::of_size(size + canary_bytes);
    if (void* const block = heap_behind_guard->take_cached(slot); block != nullptr) [[likely]] {
      --checks::until_sample;
      write_canary({static_cast<char*>(block), slot.size_class(), false}, size);
      return block;
    }
  }
  return allocate(size, block_alignment, nullptr);
}

void* allocate(std::size_t size, std::size_t alignment, bool* zeroed, ThreadHeap* arena) {
  if (size > PTRDIFF_MAX - alignment) {
    return exhausted();
  }
  tend_background_thread();
  const auto attempt = [=] { return try_to_allocate(size, alignment, zeroed, arena); };
  void* block = attempt();
  if (block == nullptr) {
    block = arena != nullptr ? exhausted() : at_limit(heap_behind_guard, attempt);
  }
  if (thorough && block != nullptr) {
    note_allocated(block, size);
    std::memset(block, zeroed != nullptr ? 0 : checks::fresh_byte,
                zeroed != nullptr ? size : std::min(size, most_filled));
    if (zeroed != nullptr) {
      *zeroed = true;
    }
  }
  return block;
}

void deallocate(void* pointer) {
  if (checks::is_sampled(pointer)) [[unlikely]] {
    checks::free_sampled(pointer);
    return;
  }
  if (!region.contains(pointer)) [[unlikely]] {
    report("free of", foreign, pointer, nullptr);
  }
  const std::size_t slice = region.slice_of(pointer);
  const Owner owner = region.owner_of(slice);
  if (owner.heap() == 0 || (owner.is_arena() && !thorough)) [[unlikely]] {
    free_run_or_arena(pointer, owner);
    return;
  }
  const Found found(pointer, slice, owner);
  const std::size_t size = sound_block("free of", found);
  const Block block = found.block();
  if (thorough) {
    note_freed(pointer);
  }
  write_poison(block, size);
  if (thorough && owner.is_arena()) {
    free_remote(pointer);  // it may be destroyed: none of its blocks waits
  } else {
    put_into_quarantine({pointer, block.size_class});
  }
}

std::size_t usable(const void* block) { return sound_size("size asked of", block); }

void* reallocate(void* block, std::size_t size) {
  const std::size_t had = sound_size("realloc of", block);
  if (size > PTRDIFF_MAX) {
    return exhausted();
  }
  // In a checked build always elsewhere: whoever keeps the old pointer finds out.
  if (!thorough && !checks::is_sampled(block)) {
    const Owner owner = region.owner_of(region.slice_of(block));
    if (owner.heap() == 0 && !Run::around(block).is_of_arena() && size > small_limit && resize_run(block, size)) {
      mark_run(block, size, nullptr);
      return block;
    }
    if (owner.heap() != 0 && !owner.is_arena()) {
      const Block in{static_cast<char*>(block), owner.size_class(), false};
      if (size <= in.room() && (size > in.room() / 2 || in.room() <= 64)) {
        write_canary(in, size);
        return block;
      }
    }
  }
  void* const moved = allocate(size, block_alignment, nullptr);
  if (moved != nullptr) {
    std::memcpy(moved, block, std::min(had, size));
    deallocate(block);
  }
  return moved;
}

#if BLOCKYARD_CHECKED
namespace {

// Calls visit(const Block&) for every place of a slab where a block begins that is live.
template <class Visit>
void for_each_live(const Slab* slab, Visit&& visit) {
  char* const first = region.slice_address(index_of(slab));
  for (std::uint32_t each = 0; each < slab->capacity; ++each) {
    char* const begin = first + std::size_t{each} * slab->block_bytes;
    if (const Record& record = record_of(begin); record.allocated_by != 0 && record.freed_by == 0) {
      visit(Block{begin, slab->size_class, each != 0});
    }
  }
}

}  // namespace

void check_size(const void* block, std::size_t size) {
  if (block != nullptr && sound_size("free of", block) != size) {
    report("free_sized with a size other than was asked for", block, block);
  }
}

void forget_blocks_of(ThreadHeap* arena) {
  for_each_slab(arena,
                [](const Slab* slab) { for_each_live(slab, [](const Block& block) { note_freed(block.begin); }); });
  for (std::uint32_t page = arena->blocks; page != 0; page = region.pages[page].next) {
    note_freed(region.page_address(page));
  }
}

const char* check_blocks() {
  const char* broken = nullptr;
  process_heaps.for_each([&](const ThreadHeap* heap) {
    for_each_slab(heap, [&](const Slab* slab) {
      for_each_live(slab, [&](const Block& block) {
        if (size_if_intact(block) == not_intact) {
          broken = fault_of(block);
        }
      });
    });
  });
  const std::uint64_t top = page_allocator.pages.totals().top;
  for (auto page = static_cast<std::uint32_t>(never_mapped >> page_shift); page < top;
       page += region.pages[page].length) {
    if (const Run run(page); run.is_live() && run.damage() != nullptr) {
      broken = run.damage();
    }
  }
  return broken;
}
#endif

}  // namespace blockyard::heap::guard
