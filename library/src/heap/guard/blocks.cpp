#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <cstring>
#include <new>
#include <utility>

#include "checks/poison.hpp"
#include "checks/quarantine.hpp"
#include "checks/report.hpp"
#include "checks/sampler.hpp"
#include "heap/api/slow_calls.hpp"
#include "heap/background/background_thread.hpp"
#include "heap/front/large_blocks.hpp"
#include "heap/front/small_blocks.hpp"
#include "heap/guard/guard.hpp"
#include "heap/pages/page_allocator.hpp"
#include "heap/settings.hpp"
#include "heap/transfer/remote_frees.hpp"

namespace blockyard::heap::guard {

namespace {

constexpr std::size_t canary_bytes = 8;  // a word at the very end of a small block
constexpr std::size_t word_bytes = sizeof(std::uint64_t);
constexpr std::size_t most_words = 4;  // that are poisoned at the beginning of a freed block
constexpr std::uint64_t fill = checks::around_byte * (~std::uint64_t{0} / 0xFF);
constexpr std::uint64_t poison = checks::freed_byte * (~std::uint64_t{0} / 0xFF);
constexpr char written_behind[] = "something was written behind the end of a block";

constinit std::uint64_t canary_key = 0;

// What class_bytes computes, in one line of the cache.
alignas(64) constexpr std::array<std::uint16_t, class_count> bytes_of_class = [] {
  std::array<std::uint16_t, class_count> bytes{};
  for (unsigned index = 0; index < class_count; ++index) {
    bytes[index] = static_cast<std::uint16_t>(class_bytes(index));
  }
  return bytes;
}();

// A small block of a thread's slab.
struct Block {
  char* begin;
  unsigned size_class;
  bool has_one_before;

  std::size_t bytes() const { return bytes_of_class[size_class]; }
  std::size_t room() const { return bytes() - canary_bytes; }
};

// A block in quarantine, or none.
class Place {
 public:
  Place() = default;
  explicit Place(const Block& block)
      : word_(reinterpret_cast<std::uintptr_t>(block.begin) << class_bits | block.size_class) {}
  bool is_empty() const { return word_ == 0; }
  Block block() const {
    return {reinterpret_cast<char*>(word_ >> class_bits), static_cast<unsigned>(word_ & ((1u << class_bits) - 1)),
            false};
  }

 private:
  static constexpr unsigned class_bits = 8;  // addresses have fewer than the other 56
  std::uintptr_t word_ = 0;
};

// The blocks that a thread freed last.
struct Quarantine {
  // More of them would be found cold when they leave, fewer would miss more.
  static constexpr unsigned largest_small = class_of(2048);

  Place exchange(const Block& block) {
    return block.size_class <= largest_small ? small.exchange(Place(block)) : larger.exchange(Place(block));
  }

  checks::LastOnes<Place, 64> small;
  checks::LastOnes<Place, 8> larger;
};
static_assert(sizeof(Quarantine) <= page_bytes);

// What the last word of a small block holds: in bits 8 to 22 how many bytes before the word were not asked for, in bit
// 23 whether the block is free. The bits above depend on its address. The first byte is neither 0, so that a terminator
// written behind a string shows, nor any of a text in UTF-8.
class Canary {
 public:
  static constexpr std::uint64_t first_byte = 0xFB;
  static constexpr unsigned told_bits = 24;  // the lowest, with the first byte

  static Canary of(const char* begin, std::size_t slack, bool free) {
    return Canary(expected(begin) ^ (slack << 8 | (free ? free_bit << 8 : 0)));
  }
  static Canary in(const char* begin, std::size_t room) {
    std::uint64_t word = 0;
    std::memcpy(&word, begin + room, sizeof word);
    return Canary(word);
  }
  void write(char* begin, std::size_t room) const { std::memcpy(begin + room, &word_, sizeof word_); }

  // Of an intact one: the slack, and free_bit.
  std::uint64_t told(const char* begin) const { return std::rotr(word_ ^ expected(begin), 8); }
  bool is_intact(const char* begin, std::size_t room) const { return (told(begin) & ~free_bit) <= room; }

  static constexpr std::uint64_t free_bit = 1u << 15;

 private:
  explicit Canary(std::uint64_t word) : word_(word) {}
  static std::uint64_t expected(const char* begin) {
    return canary_key ^ reinterpret_cast<std::uintptr_t>(begin) << told_bits;
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

// The small block of a thread's slab that begins at `pointer`, if one does. `owner` is that of its slice.
struct Found {
  Found(const void* pointer, std::size_t slice, Owner owner)
      : begin(static_cast<char*>(const_cast<void*>(pointer))),
        size_class(owner.size_class()),
        distance(static_cast<std::uint32_t>(begin - region.slice_address(slice - owner.back()))) {}
  bool is_block() const { return is_multiple(distance, class_inverse(size_class)); }
  Block block() const { return {begin, size_class, distance != 0}; }

  char* begin;
  unsigned size_class;
  std::uint32_t distance;
};

constexpr std::size_t not_intact = ~std::size_t{0};

// Bytes asked for of a live block; not_intact: it is none, or something was written around it.
[[gnu::always_inline]] inline std::size_t size_if_intact(const Block& block) {
  const std::size_t room = block.room();
  const std::uint64_t slack = Canary::in(block.begin, room).told(block.begin);
  if (slack > room) [[unlikely]] {
    return not_intact;
  }
  const std::size_t size = room - slack;
  if (!is_filled(block.begin + size, block.begin + room)) [[unlikely]] {
    return not_intact;
  }
  if (block.has_one_before) [[likely]] {
    const char* const before = block.begin - block.bytes();
    if (!Canary::in(before, room).is_intact(before, room)) [[unlikely]] {
      return not_intact;
    }
  }
  return size;
}

// Why it is not.
const char* fault_of(const Block& block, const char* freed) {
  const Canary canary = Canary::in(block.begin, block.room());
  if (!canary.is_intact(block.begin, block.room())) {
    return written_behind;
  }
  const std::uint64_t told = canary.told(block.begin);
  if ((told & Canary::free_bit) != 0) {
    return freed;
  }
  const bool is_before = is_filled(block.begin + block.room() - told, block.begin + block.room());
  return is_before ? "something was written before the beginning of a block" : written_behind;
}

// A freed block begins with poison: its first four words, or all that it has room for. Another word of it stands where
// the bytes that were asked for end.
struct Poison {
  explicit Poison(const Block& block)
      : begin(block.begin), last(block.begin + std::min(block.room(), most_words * word_bytes) - 2 * word_bytes) {}
  static bool fits(const Block& block) { return block.room() >= 2 * word_bytes; }

  void write() const {
    store(begin, poison);
    store(begin + word_bytes, poison);
    store(last, poison);
    store(last + word_bytes, poison);
  }
  bool is_intact() const {
    return ((load(begin) ^ poison) | (load(begin + word_bytes) ^ poison) | (load(last) ^ poison) |
            (load(last + word_bytes) ^ poison)) == 0;
  }

  char* begin;
  char* last;  // of two words, which may overlap the first two
};

[[gnu::always_inline]] inline void write_poison(const Block& block, std::size_t size) {
  if (Poison::fits(block)) [[likely]] {
    Poison(block).write();
  }
  store(block.begin + std::max(size, word_bytes) - word_bytes, poison);
  Canary::of(block.begin, block.room() - size, true).write(block.begin, block.room());
}

[[gnu::always_inline]] inline bool is_untouched(const Block& freed) {
  const std::uint64_t slack = Canary::in(freed.begin, freed.room()).told(freed.begin) ^ Canary::free_bit;
  return (!Poison::fits(freed) || Poison(freed).is_intact()) && slack <= freed.room() &&
         load(freed.begin + std::max(freed.room() - slack, word_bytes) - word_bytes) == poison;
}

[[noreturn]] void report_touched(const Block& freed) {
  checks::report_fault("something was written to a block after it was freed", freed.begin);
}

template <std::uint32_t most>
void check(const checks::LastOnes<Place, most>& last) {
  for (const Place& place : last.waiting) {
    if (!place.is_empty() && !is_untouched(place.block())) {
      report_touched(place.block());
    }
  }
}

[[gnu::noinline]] Quarantine* make_quarantine(ThreadHeap* heap) {
  void* const room = take_run(sizeof(Quarantine), page_bytes, nullptr, nullptr);
  if (room != nullptr) {
    heap->quarantine = new (room) Quarantine;
    region.pages[region.page_of(room)].flags |= page_cached;  // no program may free it
  }
  return static_cast<Quarantine*>(heap->quarantine);
}

// Null: the thread has no heap, or there is no memory.
[[gnu::always_inline]] inline Quarantine* quarantine_of(ThreadHeap* heap) {
  auto* const waiting = static_cast<Quarantine*>(heap->quarantine);
  return waiting != nullptr || heap == &empty_heap ? waiting : make_quarantine(heap);
}

[[gnu::always_inline]] inline void put_into_quarantine(const Block& block) {
  ThreadHeap* const heap = heap_behind_guard;
  Quarantine* const waiting = quarantine_of(heap);
  const Place oldest = waiting != nullptr ? waiting->exchange(block) : Place(block);
  if (oldest.is_empty()) [[unlikely]] {
    return;
  }
  const Block leaves = oldest.block();
  if (!is_untouched(leaves)) [[unlikely]] {
    report_touched(leaves);
  }
  free_small(heap, leaves.begin, CacheSlot::of_class(leaves.size_class));
}

void* allocate_guarded(std::size_t size, std::size_t alignment) {
  const unsigned size_class =
      alignment <= block_alignment ? class_of(size + canary_bytes) : aligned_class(alignment, size + canary_bytes);
  if (size_class == class_count) {
    return nullptr;
  }
  ThreadHeap* const heap = heap_behind_guard;
  void* block = from_cache(heap, CacheSlot::of_class(size_class));
  if (block == nullptr) [[unlikely]] {
    block = refill_and_take(heap, size_class);
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
    checks::report_fault(written_behind, block);
  }
  return size;
}

bool is_of_arena(const void* run) { return (region.pages[region.page_of(run)].flags & page_of_arena) != 0; }

[[gnu::noinline]] void free_run_or_arena(void* block, Owner owner) {
  if (owner.heap() != 0) {
    free_remote(block);
    return;
  }
  if (is_live_run(block) && !is_of_arena(block)) {
    static_cast<void>(checked_run_size(block));
  }
  free_run(block);  // reports what is none
  tend_background_thread();
}

std::size_t run_size(const void* block) {
  if (!is_live_run(block)) {
    checks::report_fault("size asked of a pointer that is no live block", block);
  }
  return is_of_arena(block) ? run_bytes(block) : checked_run_size(block);
}

void* try_to_allocate(std::size_t size, std::size_t alignment, bool* zeroed) {
  if (checks::wants_sample()) [[unlikely]] {
    if (void* const block = checks::allocate_sampled(size, std::max(alignment, block_alignment)); block != nullptr) {
      return block;
    }
  }
  if (size <= small_limit - canary_bytes && alignment <= small_limit) {
    if (void* const block = allocate_guarded(size, alignment); block != nullptr) {
      return block;
    }
  }
  void* const block = take_run(std::max(size, small_limit + 1), alignment, zeroed, nullptr);
  if (block != nullptr) {
    write_canary_behind(block, size);
  }
  return block;
}

}  // namespace

bool start() {
  canary_key = (link_key << Canary::told_bits) | Canary::first_byte;
  return checks::start_sampler(settings.guard_sample);
}

void check_quarantine() {
  if (const auto* const waiting = static_cast<const Quarantine*>(heap_behind_guard->quarantine); waiting != nullptr) {
    check(waiting->small);
    check(waiting->larger);
  }
}

void* allocate_small(std::size_t size) {
  if (size <= looked_up_limit - canary_bytes && checks::until_sample != 1) [[likely]] {
    const CacheSlot slot = CacheSlot::of_size(size + canary_bytes);
    if (void* const block = heap_behind_guard->take_cached(slot); block != nullptr) [[likely]] {
      --checks::until_sample;
      write_canary({static_cast<char*>(block), slot.size_class(), false}, size);
      return block;
    }
  }
  return allocate(size, block_alignment, nullptr);
}

void* allocate(std::size_t size, std::size_t alignment, bool* zeroed) {
  if (size > PTRDIFF_MAX - alignment) {
    return exhausted();
  }
  tend_background_thread();
  const auto attempt = [=] { return try_to_allocate(size, alignment, zeroed); };
  void* const block = attempt();
  return block != nullptr ? block : at_limit(heap_behind_guard, attempt);
}

void deallocate(void* pointer) {
  if (checks::is_sampled(pointer)) [[unlikely]] {
    checks::free_sampled(pointer);
    return;
  }
  if (!region.contains(pointer)) [[unlikely]] {
    checks::report_fault("free of a pointer that this heap never handed out", pointer);
  }
  const std::size_t slice = region.slice_of(pointer);
  const Owner owner = region.owner_of(slice);
  if (owner.heap() == 0 || owner.is_arena()) [[unlikely]] {
    free_run_or_arena(pointer, owner);
    return;
  }
  const Found found(pointer, slice, owner);
  if (!found.is_block()) [[unlikely]] {
    checks::report_fault("free of a pointer into the middle of a block", pointer);
  }
  const Block block = found.block();
  const std::size_t size = size_if_intact(block);
  if (size == not_intact) [[unlikely]] {
    checks::report_fault(fault_of(block, "free of a block that was freed already"), pointer);
  }
  write_poison(block, size);
  put_into_quarantine(block);
}

std::size_t usable(const void* block) {
  if (checks::is_sampled(block)) {
    return checks::sampled_bytes(block);
  }
  if (!region.contains(block)) {
    checks::report_fault("size asked of a pointer that this heap never handed out", block);
  }
  const std::size_t slice = region.slice_of(block);
  const Owner owner = region.owner_of(slice);
  if (owner.heap() == 0) {
    return run_size(block);
  }
  const Found found(block, slice, owner);
  if (!found.is_block()) {
    checks::report_fault("size asked of a pointer into the middle of a block", block);
  }
  if (owner.is_arena()) {
    return class_bytes(owner.size_class());
  }
  const std::size_t size = size_if_intact(found.block());
  if (size == not_intact) {
    checks::report_fault(fault_of(found.block(), "size asked of a block that was freed already"), block);
  }
  return size;
}

void* reallocate(void* block, std::size_t size) {
  const std::size_t had = usable(block);  // reports what is no live block
  if (size > PTRDIFF_MAX) {
    return exhausted();
  }
  if (!checks::is_sampled(block)) {
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
