// Gives back the memory of slabs that have not been needed for a while, also while the program sleeps.
//
// A background thread looks each quarter of a second, from when the process held more than 8 MiB of blocks until
// nothing is left to give. It gives back slabs that are empty, or whose blocks all lie in their remote list. The low
// half of their remote word says how far that is, in place of the newest block: nobody follows links in such a slab.
// Before the owner uses a slab, or gives its page away, it takes the word, and waits while that says `giving_back`. So
// the pool's lists stay the owner's, and no fast path knows of this.
//
// It ends for a fork of a program with one thread, and for what the system refuses a process with two, and comes back
// when it is wanted the next time; in a sandbox none starts (heap/linux/calls_apart.cpp).
//
// Chains that nobody took for a period are freed block by block: their slabs then are such slabs.
#pragma once

#include "base/threads.hpp"
#include "block/window.hpp"

namespace blockyard::block {

/// The low halves of a remote word. All are above any number of a block.
enum class Unneeded : std::uint32_t {
  lately = 0xFFFF'FFF0,  ///< the slab is empty
  a_while,               ///< for a quarter of a second at least; of an empty slab, or one whose blocks all are remote
  giving_back,           ///< only the background thread may change the word
  given_back,
};

/// Says that a slab is empty from now on. Owner.
inline void mark_empty(Granule& info) {
  info.remote.store(static_cast<std::uint64_t>(Unneeded::lately), std::memory_order_release);
}

/// The slab is its owner's alone again: sets its remote word to 0. What it was. Waits for up to 2 MiB, or for one slab,
/// to be given back.
inline std::uint64_t take_remote_word(Granule& info) {
  for (std::uint64_t seen = info.remote.load(std::memory_order_relaxed);;) {
    if (static_cast<std::uint32_t>(seen) == static_cast<std::uint32_t>(Unneeded::giving_back)) {
      base::sleep_for(20'000);  // a real-time thread that yields keeps the core
      seen = info.remote.load(std::memory_order_relaxed);
    } else if (info.remote.compare_exchange_weak(seen, 0, std::memory_order_acq_rel, std::memory_order_relaxed)) {
      return seen;
    }
  }
}

/// Called on slow paths, where memory may have become free: sees to it that the thread looks. Some loads where it runs.
void want_give_back();

/// Frees the chains that nobody took since the call before (static_pools.cpp). Whether there are any chains. For the
/// background thread: takes no lock of the C library's.
bool free_stale_chains();
/// In a forked child, where that thread is gone.
void free_stale_chains_in_child();

}  // namespace blockyard::block
