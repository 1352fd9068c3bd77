#include "heap/checked/blocks.hpp"

#include <atomic>
#include <bit>
#include <cstdlib>

#include "base/pages.hpp"
#include "base/say.hpp"
#include "checks/report.hpp"
#include "heap/slab_tables.hpp"

namespace blockyard::heap::checked {
namespace {

using Word = std::atomic<std::uint64_t>;

constinit Word* live = nullptr;
constinit Record* records = nullptr;
constinit std::atomic<std::size_t> words_used{0};  // from here on no bit was ever set

std::size_t unit_of(const void* pointer) { return region.offset_of(pointer) / block_alignment; }
std::uint64_t bit_of(std::size_t unit) { return std::uint64_t{1} << (unit % 64); }
const void* address_of(std::size_t unit) { return region.base + unit * block_alignment; }

}  // namespace

void start_blocks() {
  const std::size_t units = region.most_bytes / block_alignment;
  records = static_cast<Record*>(base::reserve_pages(units * sizeof(Record)));
  live = static_cast<Word*>(base::reserve_pages(units / 8));
  if (records == nullptr || live == nullptr) {
    base::say("blockyard: the checked heap has no address space for its tables\n");
    std::abort();
  }
}

Record& record_of(const void* pointer) { return records[unit_of(pointer)]; }

void write_record(const void* block, const Record& known) {
  Record& record = record_of(block);
  record.size = known.size;
  record.allocated_at = known.allocated_at;
  record.freed_at = known.freed_at;
  record.allocated_by = known.allocated_by;
  record.freed_by = known.freed_by;
  record.lead = known.lead;
  record.guarded = known.guarded;
  std::atomic_ref(record.arena).store(known.arena, std::memory_order_relaxed);
}

std::uint16_t arena_of(const void* block) {
  return std::atomic_ref(record_of(block).arena).load(std::memory_order_relaxed);
}

void mark_live(const void* block) {
  const std::size_t unit = unit_of(block);
  live[unit / 64].fetch_or(bit_of(unit), std::memory_order_acq_rel);
  std::size_t seen = words_used.load(std::memory_order_relaxed);
  while (seen <= unit / 64 && !words_used.compare_exchange_weak(seen, unit / 64 + 1, std::memory_order_relaxed)) {
  }
}

bool mark_freed(const void* block) {
  const std::size_t unit = unit_of(block);
  return (live[unit / 64].fetch_and(~bit_of(unit), std::memory_order_acq_rel) & bit_of(unit)) != 0;
}

bool is_live(const void* pointer) {
  const std::size_t unit = unit_of(pointer);
  return (live[unit / 64].load(std::memory_order_acquire) & bit_of(unit)) != 0;
}

const void* live_before(const void* pointer) {
  const std::size_t unit = unit_of(pointer);
  constexpr std::size_t most_words = (std::size_t{1} << 30) / block_alignment / 64;
  std::size_t word = unit / 64;
  std::uint64_t bits = live[word].load(std::memory_order_acquire) & (bit_of(unit) | (bit_of(unit) - 1));
  for (std::size_t looked = 0; bits == 0; ++looked) {
    if (word == 0 || looked == most_words) {
      return nullptr;
    }
    bits = live[--word].load(std::memory_order_acquire);
  }
  return address_of(word * 64 + static_cast<std::size_t>(std::bit_width(bits)) - 1);
}

void report(const char* what, const void* pointer, const Record* record) {
  if (record == nullptr) {
    checks::report_fault(what, pointer);
  }
  const checks::Known known{address_of(static_cast<std::size_t>(record - records)),
                            record->size,
                            {record->allocated_by, checks::kept_stack(record->allocated_at)},
                            {record->freed_by, checks::kept_stack(record->freed_at)}};
  checks::report_fault(what, pointer, &known);
}

void for_each_live(void (*visit)(const void* block, void* context), void* context) {
  const std::size_t words = words_used.load(std::memory_order_relaxed);
  for (std::size_t word = 0; word < words; ++word) {
    for (std::uint64_t bits = live[word].load(std::memory_order_acquire); bits != 0; bits &= bits - 1) {
      visit(address_of(word * 64 + static_cast<std::size_t>(std::countr_zero(bits))), context);
    }
  }
}

}  // namespace blockyard::heap::checked
