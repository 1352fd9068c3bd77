// The measured loop: one journal thread's events on one allocator.
#pragma once

#include "replay/run/session.hpp"

namespace blockyard::replay {

/// Restores the thread's preamble block `op` into its slot, unmeasured. Ends the run when the allocator has no memory.
void restore_block(Session& session, ReplayThread& thread, const Op& op);

/// Follows the thread's records from the clock's start to the last. Between an event's two clock reads stands only the
/// call (and the lock, where the allocator needs one). Allocates nothing; its system calls are sleeps. Ends the run
/// when the allocator has no memory.
void drive(Session& session, ReplayThread& thread);

/// As drive(), at the same pace but unmeasured: fills every block with a pattern of its own and checks at its end that
/// the pattern is whole, so that two live blocks that overlap, a reallocate that loses contents, a calloc that is not
/// zero and an alignment that is not kept end the run with a sentence.
void drive_and_verify(Session& session, ReplayThread& thread);

/// Frees one block, unmeasured; with `verify` checks its contents first.
void release_block(Session& session, Slot& slot);

/// How many of the thread's records may be followed, once it has followed `next` of them. When there are more than have
/// been published, waits for the journal's reader, asleep, and counts that. Returns `next` when the thread is through.
std::uint64_t await_records(ReplayThread& thread, std::uint64_t next);

/// Waits until the slot's last event is `event`.
void wait_for_event(const Slot& slot, std::uint32_t event, double ticks_per_ns);

/// Ends the run: the allocator gave no memory for `event`.
[[noreturn]] void out_of_memory(const Session& session, std::uint32_t event, std::uint64_t size);

/// What the loop's own code measures when there is nothing to measure.
struct Floors {
  std::uint32_t call;   ///< ticks of an empty timed region, median of 20,001
  std::uint32_t touch;  ///< ticks of an empty touch behind it, likewise
  std::uint32_t step;   ///< ticks that all of them are multiples of: 1, or more where the clock counts in coarser steps
};
Floors measure_floors();

/// Fills a fresh block with its pattern, checks a block's pattern. `event` gave the block.
void fill_pattern(const Slot& slot, std::uint32_t event);
void check_pattern(const Session& session, const Slot& slot, std::uint64_t bytes, std::uint32_t event);

}  // namespace blockyard::replay
