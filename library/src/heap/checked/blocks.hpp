// What the checked heap knows of every block: a bitmap of what is live, and a record apart from the block.
//
// Both are flat tables over the region, one bit and one record for every 16 bytes, so that a lookup takes
// no search and no lock; memory is used only where blocks begin. A record stays after the free, until another block
// begins at the same address: a second free finds where the first one was.
#pragma once

#include <cstddef>
#include <cstdint>

namespace blockyard::heap::checked {

struct Record {
  std::uint64_t size = 0;          ///< requested bytes
  std::uint32_t allocated_at = 0;  ///< stack
  std::uint32_t freed_at = 0;      ///< stack
  std::uint32_t allocated_by = 0;  ///< thread
  std::uint32_t freed_by = 0;      ///< thread; 0 while it is live
  std::uint32_t lead = 0;          ///< bytes from the beginning of the plain heap's block to this one
  std::uint16_t arena = 0;         ///< index of its arena; 0: it is of a thread's heap
  std::uint16_t guarded = 0;       ///< 1: a page that nobody may touch follows
};
static_assert(sizeof(Record) == 32);

/// Readies the tables for the region, once it is there. Ends the process when there is no address space for them: twice
/// the region's.
void start_blocks();

/// The record of the block that begins (or began, or might begin) at `pointer`, which the region contains.
Record& record_of(const void* pointer);

/// Writes the record of a block that is about to be live.
void write_record(const void* block, const Record& known);
/// Its arena. Other threads may meanwhile free the block, and allocate and record it again: a search for the blocks of
/// one arena then sees the old one or the new one, and neither is that arena.
std::uint16_t arena_of(const void* block);

/// Marks a block live.
void mark_live(const void* block);
/// Marks it no longer live; false when it was not: of two racing frees one gets false.
bool mark_freed(const void* block);
bool is_live(const void* pointer);

/// The live block that begins at or nearest before `pointer`; null when there is none within a gibibyte.
const void* live_before(const void* pointer);

/// checks::report_fault with what `record` (may be null) knows of its block.
[[noreturn]] void report(const char* what, const void* pointer, const Record* record);

/// Calls visit(block) for every live block, in the order of addresses. O(memory ever used / 1024).
void for_each_live(void (*visit)(const void* block, void* context), void* context);

}  // namespace blockyard::heap::checked
