// Remote frees: the lock-free protocol by which threads free blocks of slabs that they do not own.
//
// Each slab has a *word*: the newest remotely freed block as a 32-bit link, the number of such blocks, and a notice:
//
//   idle       the owner looks at the word by itself: the slab is in use or in the list of partial slabs
//   armed      the slab is full and nobody looks. The remote free that makes the list `wake` long announces the slab
//   announced  a remote free took that duty: the slab is in its pool's inbox, or about to be
//
//            arm (owner, list below wake)        push (any thread)             acknowledge (owner, found in inbox)
//        idle ---------------------------> armed ------------------> announced --------------------------------> idle
//             <---------------------------
//                disarm (owner)
//
// Invariants, which tests/block/remote_frees_test.cpp checks in every interleaving and a Spin model beside it:
//  1. No block is lost, and none is found twice.
//  2. A slab is in at most one inbox, at most once. So while it is announced, its owner neither gives it back nor lets
//     another pool adopt it.
//  3. Fewer than `wake` freed blocks wait in an armed slab. (An eighth of the slab, as for the owner's frees.)
//
// A slab changes its pool (adoption) only while idle. A remote free reads the slab's pool only after its own step to
// announced, which reads what arm() released. So it finds the inbox of the pool that armed.
//
// A push is a compare-and-swap, repeated under contention: lock-free. Taking the list is mostly one, too. There is no
// ABA problem: nobody takes a single block off, and a push that finds the same head again links to what is the head.
//
// The functions are templates, so that this source also runs on the model atomics of tests/interleave.
#pragma once

#include <atomic>
#include <cstdint>

namespace blockyard::block {

enum class Notice : std::uint32_t { idle, armed, announced };

/// The parts of a slab's word.
struct RemoteList {
  std::uint32_t head = 0;   ///< link of the newest block; 0 is none
  std::uint32_t count = 0;  ///< blocks in the list, below 2^30
  Notice notice = Notice::idle;

  static constexpr RemoteList unpack(std::uint64_t word) {
    return {static_cast<std::uint32_t>(word >> 32), static_cast<std::uint32_t>(word) >> 2,
            static_cast<Notice>(word & 3u)};
  }
  constexpr std::uint64_t pack() const {
    return std::uint64_t{head} << 32 | std::uint64_t{count} << 2 | static_cast<std::uint32_t>(notice);
  }
};

/// Any thread: puts a block on the list. `link(head)` stores in the block what follows it. True: the caller must put
/// the slab into the inbox of its pool.
template <class Word, class Link>
[[nodiscard]] bool remote_push(Word& word, std::uint32_t block, std::uint32_t wake, Link&& link) {
  std::uint64_t seen = word.load(std::memory_order_relaxed);
  for (;;) {
    const RemoteList old = RemoteList::unpack(seen);
    link(old.head);
    const bool announce = old.notice == Notice::armed && old.count + 1 >= wake;
    const Notice notice = announce ? Notice::announced : old.notice;
    // Release: the owner must see the link. Acquire: whoever announces must see the pool that armed.
    if (word.compare_exchange_weak(seen, RemoteList{block, old.count + 1, notice}.pack(), std::memory_order_acq_rel,
                                   std::memory_order_relaxed)) {
      return announce;
    }
  }
}

/// The owner: takes all blocks, and leaves the notice as it is.
template <class Word>
RemoteList remote_take(Word& word) {
  std::uint64_t seen = word.load(std::memory_order_relaxed);
  for (;;) {
    const RemoteList old = RemoteList::unpack(seen);
    if (old.head == 0) {
      return {};
    }
    if (word.compare_exchange_weak(seen, RemoteList{0, 0, old.notice}.pack(), std::memory_order_acquire,
                                   std::memory_order_relaxed)) {
      return old;
    }
  }
}

/// The owner of an idle slab without free blocks: it stops looking at the word. False when `wake` blocks have arrived
/// meanwhile, or when the slab is announced: then the owner will find it in the inbox.
template <class Word>
[[nodiscard]] bool remote_arm(Word& word, std::uint32_t wake) {
  std::uint64_t seen = word.load(std::memory_order_relaxed);
  for (;;) {
    RemoteList list = RemoteList::unpack(seen);
    if (list.notice != Notice::idle || list.count >= wake) {
      return list.notice == Notice::armed;
    }
    list.notice = Notice::armed;
    if (word.compare_exchange_weak(seen, list.pack(), std::memory_order_release, std::memory_order_relaxed)) {
      return true;
    }
  }
}

/// The owner: it looks at the word by itself again. False when the slab is announced.
template <class Word>
bool remote_disarm(Word& word) {
  std::uint64_t seen = word.load(std::memory_order_relaxed);
  for (;;) {
    RemoteList list = RemoteList::unpack(seen);
    if (list.notice != Notice::armed) {
      return list.notice == Notice::idle;
    }
    list.notice = Notice::idle;
    if (word.compare_exchange_weak(seen, list.pack(), std::memory_order_relaxed, std::memory_order_relaxed)) {
      return true;
    }
  }
}

/// The owner, which found the slab in its inbox: takes all blocks, and looks at the word by itself again.
template <class Word>
RemoteList remote_acknowledge(Word& word) {
  std::uint64_t seen = word.load(std::memory_order_relaxed);
  // acq_rel: the owner sees the links, and the next push comes after the slab has left the inbox.
  while (!word.compare_exchange_weak(seen, RemoteList{0, 0, Notice::idle}.pack(), std::memory_order_acq_rel,
                                     std::memory_order_relaxed)) {
  }
  return RemoteList::unpack(seen);
}

/// Whether the slab is in an inbox, or on its way there.
template <class Word>
bool remote_is_announced(const Word& word) {
  return RemoteList::unpack(word.load(std::memory_order_relaxed)).notice == Notice::announced;
}

/// Any thread that must announce: puts a slab into an inbox. `next` is the slab's own link between inbox entries.
template <class Head, class Next>
void inbox_push(Head& inbox, Next& next, std::uint32_t slab) {
  std::uint32_t seen = inbox.load(std::memory_order_relaxed);
  do {
    next.store(seen, std::memory_order_relaxed);
  } while (!inbox.compare_exchange_weak(seen, slab, std::memory_order_release, std::memory_order_relaxed));
}

/// The owner: empties the inbox. The newest slab, which links to the others; 0 if none. Read a slab's link before
/// acknowledging the slab, since it may be announced again afterwards.
template <class Head>
std::uint32_t inbox_take(Head& inbox) {
  return inbox.load(std::memory_order_relaxed) == 0 ? 0 : inbox.exchange(0, std::memory_order_acquire);
}

}  // namespace blockyard::block
