#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>

#include "heap/fault.hpp"
#include "heap/guard/guard.hpp"
#include "heap/guard/sampled.hpp"
#include "heap/janitor.hpp"
#include "heap/large_blocks.hpp"
#include "heap/remote_frees.hpp"
#include "heap/secret.hpp"
#include "heap/small_blocks.hpp"
#include "heap/supply.hpp"

namespace blockyard::heap::guard {

namespace {

constexpr std::size_t canary_bytes = 8;  // a word at the very end of a small block
constexpr std::size_t word_bytes = sizeof(std::uint64_t);
constexpr std::size_t most_words = 4;  // that are poisoned at the beginning of a freed block
constexpr std::uint64_t fill = 0xFAFAFAFAFAFAFAFA;
constexpr std::uint64_t poison = 0xDFDFDFDFDFDFDFDF;

constinit std::uintptr_t canary_key = 0;

// A small block of a thread's slab.
struct Block {
  char* begin;
  unsigned size_class;
  bool has_one_before;

  std::size_t room() const { return class_bytes(size_class) - canary_bytes; }
};

// The blocks that a thread freed last, the oldest in `first`.
struct Quarantine {
  // More would be found cold when they leave, fewer would miss more.
  static constexpr std::uint32_t most = 64;
  static constexpr std::uint32_t most_bytes = 128u << 10;

  class Place {
   public:
    Place() = default;
    explicit Place(const Block& block)
        : word_(reinterpret_cast<std::uintptr_t>(block.begin) | std::uintptr_t{block.size_class} << class_shift) {}
    Block block() const {
      return {reinterpret_cast<char*>(word_ & ((std::uintptr_t{1} << class_shift) - 1)),
              static_cast<unsigned>(word_ >> class_shift), false};
    }

   private:
    static constexpr unsigned class_shift = 56;  // addresses have fewer bits
    std::uintptr_t word_;
  };

  std::uint32_t first;
  std::uint32_t count;
  std::uint32_t bytes;
  std::array<Place, most> blocks;
};
static_assert(sizeof(Quarantine) <= page_bytes);

// What the last word of a small block holds: in bits 8 to 22 how many bytes before the word were not asked for, in bit
// 23 whether the block is free. The others depend on its address. The first byte is never 0, so that a terminator
// written behind a string shows.
class Canary {
 public:
  static constexpr std::uint64_t told = 0xFFFF00;

  static Canary of(const char* begin, std::size_t slack, bool free) {
    return Canary(expected(begin) | slack << 8 | (free ? std::uint64_t{1} << 23 : 0));
  }
  static Canary in(const char* begin, std::size_t room) {
    Canary found(0);
    std::memcpy(&found.word_, begin + room, sizeof found.word_);
    return found;
  }
  void write(char* begin, std::size_t room) const { std::memcpy(begin + room, &word_, sizeof word_); }

  bool is_intact(const char* begin, std::size_t room) const {
    return (word_ & ~told) == expected(begin) && slack() <= room;
  }
  std::size_t slack() const { return word_ >> 8 & 0x7FFF; }
  bool is_free() const { return (word_ >> 23 & 1) != 0; }

 private:
  explicit Canary(std::uint64_t word) : word_(word) {}
  static std::uint64_t expected(const char* begin) {
    std::uint64_t mixed = (reinterpret_cast<std::uintptr_t>(begin) ^ canary_key) * 0x9E3779B97F4A7C15u;
    mixed ^= mixed >> 32;
    return (mixed & ~told) | 1;
  }

  std::uint64_t word_;
};

std::uint64_t load(const char* from) {
  std::uint64_t word = 0;
  std::memcpy(&word, from, sizeof word);
  return word;
}
void store(char* to, std::uint64_t word) { std::memcpy(to, &word, sizeof word); }

// The bytes from `from` to `end`, at most two words of them, hold `fill` from here on; there is a word before `end`.
void write_fill(char* from, char* end) {
  const auto slack = static_cast<std::size_t>(end - from);
  if (slack >= word_bytes) {
    store(from, fill);
    store(slack >= 2 * word_bytes ? from + word_bytes : end - word_bytes, fill);
  } else if (slack != 0) {
    const std::uint64_t theirs = ~std::uint64_t{0} >> 8 * slack;  // little-endian: the first bytes
    store(end - word_bytes, (load(end - word_bytes) & theirs) | (fill & ~theirs));
  }
}

bool is_filled(const char* from, const char* end) {
  const auto slack = static_cast<std::size_t>(end - from);
  if (slack >= word_bytes) {
    return ((load(from) ^ fill) | (load(slack >= 2 * word_bytes ? from + word_bytes : end - word_bytes) ^ fill)) == 0;
  }
  return slack == 0 || ((load(end - word_bytes) ^ fill) >> 8 * (word_bytes - slack)) == 0;
}

[[gnu::always_inline]] inline void write_canary(const Block& block, std::size_t size) {
  write_fill(block.begin + size, block.begin + block.room());
  Canary::of(block.begin, block.room() - size, false).write(block.begin, block.room());
}

// The small block of a thread's slab that begins at `pointer`, or the report that none does. `owner` is that of its
// slice.
Block block_at(const void* pointer, std::size_t slice, Owner owner, const char* inside) {
  char* const begin = static_cast<char*>(const_cast<void*>(pointer));
  const auto distance = static_cast<std::uint32_t>(begin - region.slice_address(slice - owner.back()));
  if (!is_multiple(distance, class_inverse(owner.size_class()))) {
    report_fault(inside, pointer);
  }
  return {begin, owner.size_class(), distance != 0};
}

// Bytes asked for of a live block; reports any other, and what was written around it.
[[gnu::always_inline]] inline std::size_t checked_size(const Block& block, const char* freed) {
  const Canary canary = Canary::in(block.begin, block.room());
  if (!canary.is_intact(block.begin, block.room())) {
    report_fault("something was written behind the end of a block", block.begin);
  }
  if (canary.is_free()) {
    report_fault(freed, block.begin);
  }
  const std::size_t size = block.room() - canary.slack();
  if (!is_filled(block.begin + size, block.begin + block.room())) {
    report_fault("something was written behind the end of a block", block.begin);
  }
  if (block.has_one_before) {
    const char* const before = block.begin - block.room() - canary_bytes;
    if (!Canary::in(before, block.room()).is_intact(before, block.room())) {
      report_fault("something was written before the beginning of a block", block.begin);
    }
  }
  return size;
}

// Words of poison at the beginning of a freed block; another one stands where the bytes that were asked for end.
std::size_t poisoned_words(const Block& block) { return std::min(block.room() / word_bytes, most_words); }

[[gnu::always_inline]] inline void write_poison(const Block& block, std::size_t size) {
  if (const std::size_t words = poisoned_words(block); words == most_words) [[likely]] {
    for (std::size_t each = 0; each < most_words; ++each) {
      store(block.begin + each * word_bytes, poison);
    }
  } else {
    for (std::size_t each = 0; each < words; ++each) {
      store(block.begin + each * word_bytes, poison);
    }
  }
  store(block.begin + std::max(size, word_bytes) - word_bytes, poison);
  Canary::of(block.begin, block.room() - size, true).write(block.begin, block.room());
}

// Reports a freed block that something was written to since.
[[gnu::always_inline]] inline void check_freed(const Block& block) {
  const Canary canary = Canary::in(block.begin, block.room());
  std::uint64_t differs = 0;
  if (const std::size_t words = poisoned_words(block); words == most_words) [[likely]] {
    for (std::size_t each = 0; each < most_words; ++each) {
      differs |= load(block.begin + each * word_bytes) ^ poison;
    }
  } else {
    for (std::size_t each = 0; each < words; ++each) {
      differs |= load(block.begin + each * word_bytes) ^ poison;
    }
  }
  if (differs != 0 || !canary.is_intact(block.begin, block.room()) || !canary.is_free() ||
      load(block.begin + std::max(block.room() - canary.slack(), word_bytes) - word_bytes) != poison) [[unlikely]] {
    report_fault("something was written to a block after it was freed", block.begin);
  }
}

[[gnu::always_inline]] inline void release(ThreadHeap* heap, const Block& block) {
  check_freed(block);
  free_small(heap, block.begin, cache_place(block.size_class));
}

[[gnu::always_inline]] inline void release_oldest(ThreadHeap* heap, Quarantine* waiting) {
  const Block oldest = waiting->blocks[waiting->first].block();
  waiting->first = (waiting->first + 1) % Quarantine::most;
  --waiting->count;
  waiting->bytes -= class_bytes(oldest.size_class);
  release(heap, oldest);
}

// Null: the thread has no heap, or there is no memory.
Quarantine* quarantine_of(ThreadHeap* heap) {
  if (heap->quarantine == nullptr && heap != &empty_heap) {
    heap->quarantine = allocate_run(sizeof(Quarantine), page_bytes, nullptr, nullptr);
    if (heap->quarantine != nullptr) {
      auto* const made = static_cast<Quarantine*>(heap->quarantine);
      made->first = made->count = made->bytes = 0;
      region.pages[region.page_of(made)].flags |= page_cached;  // no program may free it
    }
  }
  return static_cast<Quarantine*>(heap->quarantine);
}

void* allocate_guarded(std::size_t size, std::size_t alignment) {
  const unsigned size_class =
      alignment <= block_alignment ? class_of(size + canary_bytes) : aligned_class(alignment, size + canary_bytes);
  if (size_class == class_count) {
    return nullptr;
  }
  ThreadHeap* const heap = heap_behind_guard;
  void* block = allocate_small(heap, cache_place(size_class));
  if (block == nullptr) [[unlikely]] {
    block = allocate_slow(heap, size_class);
  }
  if (block != nullptr) {
    write_canary({static_cast<char*>(block), size_class, false}, size);
  }
  return block;
}

// Of a block of whole pages: the bytes of its run that were not asked for. In its tag, where arenas have a link.
std::uint32_t& slack_of(const void* block) { return region.pages[region.page_of(block)].next; }

void write_canary_behind(void* block, std::size_t size) {
  slack_of(block) = static_cast<std::uint32_t>(run_bytes(block) - size);
  write_fill(static_cast<char*>(block) + size, static_cast<char*>(block) + run_bytes(block));
}

std::size_t checked_run_size(const void* block) {
  const std::size_t size = run_bytes(block) - slack_of(block);
  if (!is_filled(static_cast<const char*>(block) + size, static_cast<const char*>(block) + run_bytes(block))) {
    report_fault("something was written behind the end of a block", block);
  }
  return size;
}

bool is_of_arena(const void* run) { return (region.pages[region.page_of(run)].flags & page_of_arena) != 0; }

std::size_t run_size(const void* block) {
  if (!is_live_run(block)) {
    report_fault("size asked of a pointer that is no live block", block);
  }
  return is_of_arena(block) ? run_bytes(block) : checked_run_size(block);
}

}  // namespace

bool start() {
  canary_key = secret() * 0xD1B54A32D192ED03u;
  return start_sampled();
}

void start_reports() { start_trap(); }

void check_quarantine() {
  if (const auto* const waiting = static_cast<const Quarantine*>(heap_behind_guard->quarantine); waiting != nullptr) {
    for (std::uint32_t each = 0; each < waiting->count; ++each) {
      check_freed(waiting->blocks[(waiting->first + each) % Quarantine::most].block());
    }
  }
}

void* allocate(std::size_t size, std::size_t alignment, bool* zeroed) {
  if (wants_sample()) [[unlikely]] {
    if (void* const block = allocate_sampled(size, std::max(alignment, block_alignment)); block != nullptr) {
      return block;
    }
  }
  if (size <= small_limit - canary_bytes && alignment <= small_limit) {
    if (void* const block = allocate_guarded(size, alignment); block != nullptr) {
      return block;
    }
  }
  void* const block = allocate_run(std::max(size, small_limit + 1), alignment, zeroed, nullptr);
  if (block != nullptr) {
    write_canary_behind(block, size);
  }
  return block;
}

void deallocate(void* pointer) {
  if (is_sampled(pointer)) [[unlikely]] {
    free_sampled(pointer);
    return;
  }
  if (!region.contains(pointer)) {
    report_fault("free of a pointer that this heap never handed out", pointer);
  }
  const std::size_t slice = region.slice_of(pointer);
  const Owner owner = region.owner_of(slice);
  if (owner.heap() == 0) {
    if (is_live_run(pointer) && !is_of_arena(pointer)) {
      static_cast<void>(checked_run_size(pointer));
    }
    free_run(pointer);  // reports what is none
    start_janitor_if_due();
    return;
  }
  if (owner.is_arena()) {
    free_remote(pointer);
    return;
  }
  const Block block = block_at(pointer, slice, owner, "free of a pointer into the middle of a block");
  write_poison(block, checked_size(block, "free of a block that was freed already"));
  ThreadHeap* const heap = heap_behind_guard;
  Quarantine* const waiting = quarantine_of(heap);
  if (waiting == nullptr) [[unlikely]] {
    release(heap, block);
    return;
  }
  if (waiting->count == Quarantine::most) {
    release_oldest(heap, waiting);
  }
  waiting->blocks[(waiting->first + waiting->count) % Quarantine::most] = Quarantine::Place(block);
  ++waiting->count;
  waiting->bytes += class_bytes(owner.size_class());
  while (waiting->bytes > Quarantine::most_bytes) {
    release_oldest(heap, waiting);
  }
}

std::size_t usable(const void* block) {
  if (is_sampled(block)) {
    return sampled_bytes(block);
  }
  if (!region.contains(block)) {
    report_fault("size asked of a pointer that this heap never handed out", block);
  }
  const std::size_t slice = region.slice_of(block);
  const Owner owner = region.owner_of(slice);
  if (owner.heap() == 0) {
    return run_size(block);
  }
  const Block found = block_at(block, slice, owner, "size asked of a pointer into the middle of a block");
  return owner.is_arena() ? class_bytes(owner.size_class())
                          : checked_size(found, "size asked of a block that was freed already");
}

void* reallocate(void* block, std::size_t size) {
  const std::size_t had = usable(block);  // reports what is no live block
  if (!is_sampled(block)) {
    const Owner owner = region.owner_of(region.slice_of(block));
    if (owner.heap() == 0 && !is_of_arena(block) && size > small_limit && resize_run(block, size)) {
      write_canary_behind(block, size);
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

}  // namespace blockyard::heap::guard
