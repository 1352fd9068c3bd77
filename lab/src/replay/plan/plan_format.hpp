// The plan file: what a journal, or a stretch of one, asks of an allocator, laid out for replaying.
//
//   PlanHeader | chunks of Op, 4096 to a chunk, each of one thread | preamble ops, thread by thread
//              | PlanThread[threads] | PlanChunk[chunks] | event number of each frame mark, of each phase mark (u32)
//              | with routes: PlanRoute[routes] | generations (u64) | route of every 64 slots (u32)
//
// Only the version that wrote a plan reads it, on the same kind of machine: it is an intermediate of one campaign. For
// keeping there are journals. Numbers are little-endian.
#pragma once

#include <cstddef>
#include <cstdint>

#include "journal/event.hpp"

namespace blockyard::replay {

inline constexpr char plan_magic[8] = {'B', 'Y', 'P', 'L', 'A', 'N', '\r', '\n'};
inline constexpr std::uint32_t plan_version = 3;

/// Stands where there is no event or no slot.
inline constexpr std::uint32_t none = 0xffff'ffffu;

/// Events that one plan can number: `none` is the last of 32 bits.
inline constexpr std::uint64_t max_events = none;
/// The most that a sample row can name.
inline constexpr std::uint32_t max_threads = 65'535;
/// Sizes take 48 bits: all that a process can address on x86-64 and aarch64.
inline constexpr std::uint64_t max_size = journal::most_block_bytes;
/// 4096 ops to a chunk: 96 KiB, small enough that a plan of a thousand threads is written from 100 MB.
inline constexpr std::size_t chunk_ops = 4096;

/// malloc's own alignment on both processors, and what an op says that asked for none.
inline constexpr std::uint8_t natural_alignment_log2 = 4;

/// Op::kind is a journal::Kind up to reallocate, or one of these, which are no events and have no row. A pause is a
/// wait too long for Op::delta_ns, which then stands in its size.
inline constexpr std::uint8_t kind_pause = 255;
/// With routes: a frame of the library's temp memory ends. Size 1: it is the program's frame, at the mark `event`; size
/// 0: the thread's own, at once.
inline constexpr std::uint8_t kind_frame_end = 254;
/// With routes: waits until the arena of route `slot` was rewound `size` times.
inline constexpr std::uint8_t kind_await_rewind = 253;
inline constexpr std::uint8_t first_special_kind = kind_await_rewind;
/// In a run's record, never in a plan: the last op of a burst, with what the burst took.
inline constexpr std::uint8_t kind_burst_end = 252;
/// The same of an op that is no event.
inline constexpr std::uint8_t kind_burst_end_apart = 251;

/// One event of one thread.
///
/// A *slot* holds one live block. The planner recycles slots, so the run's table is as long as the most blocks alive
/// and stays in the cache; a reallocate keeps its block's slot.
struct Op {
  std::uint32_t event;     ///< number in the journal
  std::uint32_t slot;      ///< the slot that the block goes into or comes from
  std::uint32_t delta_ns;  ///< after this thread's previous op (the first: after the clock's start), at 1x
  std::uint32_t after;     ///< the slot's previous event, where another thread has it; it must be over. Or `none`.
  std::uint32_t size_low;  ///< bytes asked for; of a free, what its block was asked with
  std::uint16_t size_high;
  std::uint8_t kind;
  std::uint8_t alignment_log2;  ///< of the block; natural_alignment_log2 where none was asked, and after a reallocate

  /// One that is due at once.
  static Op of(std::uint8_t kind, std::uint32_t event, std::uint32_t slot, std::uint64_t size,
               std::uint8_t alignment_log2 = 0, std::uint32_t after = none) {
    return {.event = event,
            .slot = slot,
            .delta_ns = 0,
            .after = after,
            .size_low = static_cast<std::uint32_t>(size),
            .size_high = static_cast<std::uint16_t>(size >> 32),
            .kind = kind,
            .alignment_log2 = alignment_log2};
  }
  [[nodiscard]] std::uint64_t size() const { return (std::uint64_t{size_high} << 32) | size_low; }
};
static_assert(sizeof(Op) == 24 && alignof(Op) == 4);

enum PlanFlags : std::uint32_t {
  plan_paced = 1u << 0,       ///< the journal has times; else only `--pace max` means anything
  plan_one_thread = 1u << 1,  ///< all threads' events were merged into one
};

struct PlanHeader {
  char magic[8];
  std::uint32_t version;
  std::uint32_t flags;  ///< PlanFlags
  std::uint64_t file_bytes;
  std::uint64_t events;           ///< the journal's events up to the stretch's end, marks and preamble counted
  std::uint64_t measured_events;  ///< ops that are no pauses
  std::uint64_t blocks;           ///< blocks given by measured events
  std::uint64_t preamble_blocks;
  std::uint64_t preamble_bytes;
  std::uint64_t peak_bytes;  ///< most bytes asked for and alive at once, preamble included
  std::uint64_t peak_blocks;
  std::uint64_t pool_bytes;   ///< pool for an allocator that needs one, see pool_bytes()
  std::uint64_t duration_ns;  ///< from the clock's start to the last event, at 1x
  std::uint64_t origin_ns;    ///< the journal's time at the clock's start
  std::uint32_t threads;      ///< PlanThreads
  std::uint32_t slots;
  std::uint32_t chunks;
  std::uint32_t frames;
  std::uint32_t phases;
  std::uint32_t routes;       ///< PlanRoutes
  std::uint32_t generations;  ///< of all rewindable routes
  std::uint32_t zero;
  std::uint64_t frame_ends;     ///< ops that end a frame
  std::uint64_t tables_offset;  ///< of PlanThread and all that follows it, one after another
  std::uint64_t tables_hash;    ///< XXH3 of the tables
  std::uint64_t header_hash;    ///< XXH3 of everything before this field
};
static_assert(sizeof(PlanHeader) == 168);

struct PlanThread {
  std::uint64_t ops;              ///< pauses included
  std::uint64_t preamble_offset;  ///< in the file
  std::uint64_t preamble_ops;
  std::uint64_t preamble_hash;   ///< XXH3 of those ops
  std::uint32_t journal_thread;  ///< index in the journal
  std::uint32_t chunks;          ///< its chunks follow those of the thread before
};
static_assert(sizeof(PlanThread) == 40);

struct PlanChunk {
  std::uint64_t offset;  ///< in the file
  std::uint64_t hash;    ///< XXH3 of its ops
  std::uint64_t ops;
};
static_assert(sizeof(PlanChunk) == 24);

/// Slots come in groups of so many. A group belongs to one thread and one route, and no cache line to two threads.
inline constexpr std::uint32_t slot_group = 64;

/// Why a block that a routes file names stays on the program's allocator.
enum class Refusal : std::uint8_t {
  other_thread,    ///< another thread frees it or reallocates it
  outlives_frame,  ///< its frame ends before it; for temp job, more than four frames end
  outlives_scope,  ///< a scope that opened before it closes before it
  does_not_fit,    ///< it is larger than its pool's blocks or than the library allows, or aligned to more
  split,           ///< reallocates lead from its route to another, or to none
  preamble,        ///< it is alive when the stretch begins
  unfinished,      ///< nothing frees it before the stretch ends
};
inline constexpr std::size_t refusals = 7;

/// A route of the routes file, and what the plan has of it.
struct PlanRoute {
  std::uint64_t bytes;              ///< as journal::Route::bytes
  std::uint64_t blocks;             ///< listed blocks that go this way
  std::uint64_t refused[refusals];  ///< listed blocks that do not, by Refusal
  std::uint64_t peak_bytes;         ///< most bytes asked for and alive at once on this route
  std::uint64_t extra_bytes;        ///< most bytes reserved or kept at once beyond those
  std::uint32_t group;              ///< as journal::Route::group
  std::uint32_t first_generation;   ///< rewindable: its part of the generations
  std::uint32_t generations;
  std::uint8_t kind;            ///< journal::RouteKind
  std::uint8_t alignment_log2;  ///< at least natural_alignment_log2
  std::uint16_t zero;
};
static_assert(sizeof(PlanRoute) == 104);

/// The pool for an allocator that can't grow. It has half again of the bytes for fragmentation (a TLSF pool needs less
/// than a quarter on every journal tried), 64 bytes per block for headers and rounding, twice the largest block because
/// a reallocate may hold both copies while the pool has no hole for either, and 16 MiB so that tiny journals work.
constexpr std::uint64_t pool_bytes(std::uint64_t peak_bytes, std::uint64_t peak_blocks, std::uint64_t largest) {
  constexpr std::uint64_t huge_page = std::uint64_t{2} << 20;
  const std::uint64_t bytes = peak_bytes + peak_bytes / 2 + 64 * peak_blocks + 2 * largest + (std::uint64_t{16} << 20);
  return (bytes + huge_page - 1) / huge_page * huge_page;
}

}  // namespace blockyard::replay
