// Watched pools: in a process that is observed, every allocate and free of a block takes the slow path and is checked
// or announced there, however the calling code was compiled.
//
// A process is checked when it runs under Valgrind, when AddressSanitizer is in it, when the library is a checked build
// (BLOCKYARD_CHECKED), or when BLOCKYARD_CHECK=1 stands in its environment. It is observed when it is checked, and when
// a recorder listens to its blocks (base/observer.hpp, in builds with BLOCKYARD_OBSERVED). That is decided once, before
// the first block.
//
// A watched pool hands its blocks to nobody's fast path: the allocator's `current` stays at by_block_no_slab. Freed
// blocks wait in a queue outside of the blocks, so that their whole memory is poison:
//   AddressSanitizer  poisons it: any access is reported with its stack
//   Valgrind          is told of pool, allocations and frees
//   checked           a pattern fills it, and is looked at when the block is handed out again: "use after free"
// and a bit for each block says whether it lives: "double free", "foreign free". Found faults end the process with one
// sentence.
#pragma once

#include <cstddef>

namespace blockyard::block {

struct Pool;
struct Slab;
struct TypeRecord;

/// BLOCKYARD_LEAKS in the environment: 1 asks for leak reports, 2 for stacks too where blocks have them. 0 without it, and
/// where it is anything else, which is said once.
int leaks_wanted();

/// Whether this process is observed. Cheap after the first call.
bool process_is_watched();
/// Whether it is checked: else its blocks are only announced.
bool process_is_checked();

/// Makes a new pool a watched one; false when memory is exhausted.
bool watch_pool(Pool* pool);
void* watch_allocate(Pool* pool);
/// Frees a block that is supposed to be of this pool; nullptr when no such pool was ever made: then it is a foreign
/// one.
void watch_free(const Pool* pool, void* block);
/// Frees a static block that its caller supposes in this slab, by the size of which it believes it to be.
void watch_free_in(const Slab* supposed, void* block);
/// Undoes what slab_put() did to a watched block before anybody looked.
void watch_undo_put(Slab* slab);
void watch_reset(Pool* pool);
void watch_pool_ends(Pool* pool);
/// Blocks of the pool that wait in its queue.
std::size_t watch_waiting(const Pool* pool);

/// Notes and forgets the type of a static block, for the leak report; the caller holds the lock of watched static
/// pools.
void watch_type(const void* block, TypeRecord* type);
void watch_forget_type(const void* block);

/// For tests of what happens when memory is exhausted: of a watched process's allocations, by blocks and by containers'
/// arrays, the one after `more` further ones fails, and all later ones. Negative: none.
void watch_fail_after(long more);
/// Whether the allocation under way is to fail.
bool watch_fails_now();

}  // namespace blockyard::block
