// The writing end of a thread's ring: claim, stamp, write, publish.
#pragma once

#include <atomic>
#include <cstdint>
#include <cstring>

#include "record/channel.hpp"
#include "record/linux/stamp.hpp"

namespace blockyard::record {

/// Points inside an append at which a test may pause the thread; the shipped policy does nothing.
struct NoDelay {
  static void after_claim() {}
  static void after_stamp() {}
  static void before_publish() {}
};

enum class When : std::uint8_t { before, after };  ///< whether the stamp is taken before or after the real call

/// One thread's own view of its slot. Trivial, so that thread-local storage needs no constructor for it.
struct Producer {
  Slot* slot;
  std::uint64_t* words;
  std::uint64_t mask;
  std::uint64_t head;   ///< next word to write
  std::uint64_t from;   ///< the first word that lies in this ring; those before lie in another
  std::uint64_t limit;  ///< words up to here are known to be free
  StampClock clock;
  bool fences;

  /// Starts with the small ring of a slot that this thread owns.
  void bind(Slot& to, std::uint64_t ring_words, StampClock stamp_clock, bool with_fences) {
    slot = &to;
    clock = stamp_clock;
    fences = with_fences;
    head = to.head.load(std::memory_order_relaxed);
    use(small_ring(to), ring_words, 0);
  }

  /// From now on, records go to this large ring.
  void grow(std::uint64_t* ring, std::uint64_t ring_words, std::uint32_t number) {
    slot->large_from.store(head, std::memory_order_relaxed);
    slot->large.store(number, std::memory_order_release);
    use(ring, ring_words, head);
  }

  /// Whether there is room for `count` more words. Reads the collector's position only when the last known one is used
  /// up.
  bool has_room(std::uint64_t count) {
    if (__builtin_expect(head + count <= limit, 1)) return true;
    const std::uint64_t taken = slot->tail.load(std::memory_order_seq_cst);
    limit = (taken > from ? taken : from) + mask + 1;
    return head + count <= limit;
  }

  /// Appends one record; there must be room for it. The claim says, before the stamp exists, that a record is under
  /// way, so that the collector never takes this thread for idle. Lock-free; calls nothing. Returns the stamp.
  template <When when, typename Delay = NoDelay>
  std::uint64_t append(std::uint64_t first, std::uint64_t third = 0, std::uint64_t fourth = 0,
                       const char* text = nullptr) {
    const std::uint64_t count = words_of(first);
    slot->claim.store(head + count, std::memory_order_relaxed);
    // With the collector's membarrier a compiler fence is enough; without it the processor must not move the stamp
    // either.
    if (__builtin_expect(fences, 0)) {
      fence_before_stamp();
    } else {
      std::atomic_signal_fence(std::memory_order_seq_cst);
    }
    Delay::after_claim();
    const std::uint64_t stamp = when == When::before ? stamp_before(clock) : stamp_after(clock);
    Delay::after_stamp();
    words[head & mask] = first;
    words[(head + 1) & mask] = stamp;
    if (text != nullptr) {
      copy_text(text, payload_of(first));
    } else if (count >= 3) {
      words[(head + 2) & mask] = third;
      if (count == 4) words[(head + 3) & mask] = fourth;
    }
    Delay::before_publish();
    head += count;
    slot->head.store(head, std::memory_order_release);
    return stamp;
  }

 private:
  void use(std::uint64_t* ring, std::uint64_t ring_words, std::uint64_t first_word) {
    words = ring;
    mask = ring_words - 1;
    from = first_word;
    limit = 0;
  }

  void copy_text(const char* text, std::uint64_t bytes) {
    std::uint64_t at = head + 2;
    for (std::uint64_t done = 0; done < bytes; done += 8, ++at) {
      std::uint64_t word = 0;
      std::memcpy(&word, text + done, bytes - done < 8 ? bytes - done : 8);
      words[at & mask] = word;
    }
  }
};

}  // namespace blockyard::record
