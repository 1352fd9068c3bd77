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

inline bool says(std::uint64_t word, Unneeded state) {
  return static_cast<std::uint32_t>(word) == static_cast<std::uint32_t>(state);
}
/// The word of the same slab in another state.
inline std::uint64_t with(std::uint64_t word, Unneeded state) {
  return word >> 32 << 32 | static_cast<std::uint32_t>(state);
}

// What becomes of a slab's remote word. Templates, so that the shipped source also compiles against a test scheduler.

/// Says that a slab is empty from now on. Owner.
template <class Word>
void mark_empty(Word& remote) {
  remote.store(static_cast<std::uint64_t>(Unneeded::lately), std::memory_order_release);
}

struct Sleep {
  void operator()() const { base::sleep_for(20'000); }  // a real-time thread that yields keeps the core
};
/// The slab is its owner's alone again: sets its remote word to 0. What it was. Waits for up to 2 MiB, or for one slab,
/// to be given back.
template <class Word, class Wait = Sleep>
std::uint64_t take_remote_word(Word& remote, Wait wait = {}) {
  for (std::uint64_t seen = remote.load(std::memory_order_relaxed);;) {
    if (says(seen, Unneeded::giving_back)) {
      wait();
      seen = remote.load(std::memory_order_relaxed);
    } else if (remote.compare_exchange_weak(seen, 0, std::memory_order_acq_rel, std::memory_order_relaxed)) {
      return seen;
    }
  }
}

/// The background thread moves the word on, unless the owner has taken it meanwhile: false.
template <class Word>
bool move_on(Word& remote, std::uint64_t from, Unneeded to) {
  return remote.compare_exchange_strong(from, with(from, to), std::memory_order_acq_rel, std::memory_order_relaxed);
}
/// It was giving the slab's memory back, which is `gone` or stays.
template <class Word>
void end_giving_back(Word& remote, bool gone) {
  remote.store(with(remote.load(std::memory_order_relaxed), gone ? Unneeded::given_back : Unneeded::a_while),
               std::memory_order_release);
}

/// Called on slow paths, where memory may have become free: sees to it that the thread looks. Some loads where it runs.
void want_give_back();

/// Frees the chains that nobody took since the call before (static_pools.cpp). Whether there are any chains. For the
/// background thread: takes no lock of the C library's.
bool free_stale_chains();
/// In a forked child, where that thread is gone.
void free_stale_chains_in_child();

}  // namespace blockyard::block
