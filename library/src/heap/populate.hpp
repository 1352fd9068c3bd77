// Populating memory before it is wanted: the reserve, and slabs cut out of it.
//
// Bound: a step populates at most one chunk.
#pragma once

#include <cstddef>
#include <cstdint>

#include "heap/supply.hpp"

namespace blockyard::heap {

/// Populates a chunk that becomes part of the reserve. What large blocks left is mostly resident, so that writing to it
/// costs next to nothing: with `dirty_first` it is taken first, else only where nothing else is to be had. False where
/// nothing is left to populate. `may_try_huge`: it may be a trial of huge pages (huge_chunks.hpp).
bool populate_chunk(Supply& supply, bool dirty_first, bool may_try_huge);

/// Cuts one slab of so many slices that then stands ready. False when memory is exhausted.
bool cut_ready_slab(Supply& supply, std::uint32_t slices);

/// Populates on the calling thread until `bytes` stand ready. False when they cannot be had. Any thread.
bool prefault(Supply& supply, std::size_t bytes);

/// The first reserve and the first slabs, before anybody allocates.
void make_first_reserve(Supply& supply);

}  // namespace blockyard::heap
