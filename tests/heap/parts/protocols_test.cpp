// The heap's lock-free protocols, their shipped source, under every interleaving of a few threads; and each check shown
// to find a planted bug.
#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <set>
#include <vector>

#include "base/remote_list.hpp"
#include "heap/front/heap_table.hpp"
#include "heap/index_stack.hpp"
#include "heap/transfer/depot.hpp"
#include "interleave/explorer.hpp"
#include "pages/page_heap.hpp"

namespace {

using namespace blockyard::heap;
using namespace blockyard::pages;
using blockyard::base::PendingStack;
using blockyard::base::RemoteBatch;
using blockyard::base::RemoteList;
using namespace interleave;

// The ready stack: one thread pops, another pops two and pushes the first again. No index may be held twice.
template <class Atomics>
Explorer::Program ready_stack() {
  using Link = typename Atomics::template atomic<std::uint32_t>;
  struct State {
    IndexStack<Atomics> stack;
    std::array<Link, 4> links;
    std::array<Plain<int>, 4> contents;
    std::set<std::uint32_t> held;

    auto link() {
      return [this](std::uint32_t index) -> Link& { return links[index]; };
    }
    void push(std::uint32_t index) {
      contents[index].write(static_cast<int>(index));
      stack.push(index, link());
    }
    std::uint32_t pop() {
      const std::uint32_t index = stack.pop(link());
      if (index != 0) {
        if (contents[index].read() != static_cast<int>(index)) {
          throw Violation("an index was popped before what its pusher wrote was visible");
        }
        if (!held.insert(index).second) {
          throw Violation("an index was popped twice");
        }
      }
      return index;
    }
    void give(std::uint32_t index) {
      held.erase(index);
      push(index);
    }
  };
  auto state = std::make_shared<State>();
  return {{[state] {
             state->push(1);
             state->push(2);
             state->push(3);
           },
           [state] { state->pop(); },
           [state] {
             const std::uint32_t first = state->pop();
             state->pop();
             if (first != 0) {
               state->give(first);
             }
           }},
          [state] {
            while (state->pop() != 0) {
            }
            if (state->held.size() != 3) {
              throw Violation("an index was lost");
            }
          }};
}

TEST(HeapProtocols, no_ready_slab_is_handed_out_twice_or_lost_under_all_interleavings) {
  SKIP_UNDER_SANITIZERS();
  const Explorer::Result result = Explorer(4).explore(ready_stack<ModelAtomics>);
  EXPECT_EQ(result.violation, "");
}

TEST(HeapProtocols, the_check_of_the_ready_stack_finds_a_missing_version) {
  EXPECT_NE(Explorer(3).explore(ready_stack<AtomicsWithoutVersion>).violation, "");
}

TEST(HeapProtocols, the_check_of_the_ready_stack_finds_a_forgotten_release) {
  EXPECT_NE(Explorer(3).explore(ready_stack<AtomicsWithoutRelease>).violation, "");
}

// With a planted bug: who takes looks whether a slot is full, but does not claim it.
template <class Atomics>
struct RingWithoutClaim : MagazineRing<Atomics> {
  template <class TurnOf, class Use>
  static bool take(typename MagazineRing<Atomics>::Word& taken, unsigned shift, TurnOf&& turn_of, Use&& use) {
    const std::uint64_t at = taken.load(std::memory_order_relaxed);
    auto& turn = turn_of(MagazineRing<Atomics>::slot(at, shift));
    const std::uint64_t seen = turn.load(std::memory_order_acquire);
    if (seen != (at >> shift) * 2 + 1) {
      return false;
    }
    taken.store(at + 1, std::memory_order_relaxed);
    use(MagazineRing<Atomics>::slot(at, shift));
    turn.store(seen + 1, std::memory_order_release);
    return true;
  }
};

// With a planted bug: a turn says full or to be filled, and not which time round.
template <class Atomics>
struct RingWithoutRounds : MagazineRing<Atomics> {
  template <class TurnOf, class Fill>
  static bool give(typename MagazineRing<Atomics>::Word& given, unsigned shift, TurnOf&& turn_of, Fill&& fill) {
    std::uint64_t at = given.load(std::memory_order_relaxed);
    auto& turn = turn_of(MagazineRing<Atomics>::slot(at, shift));
    const std::uint64_t seen = turn.load(std::memory_order_acquire);
    if (seen % 2 != 0 ||
        !given.compare_exchange_weak(at, at + 1, std::memory_order_relaxed, std::memory_order_relaxed)) {
      return false;
    }
    fill(MagazineRing<Atomics>::slot(at, shift));
    turn.store((at >> shift) * 2 + 1, std::memory_order_release);
    return true;
  }
};

// With a planted bug: nothing is mended.
template <class Atomics>
struct RingThatStaysTorn : MagazineRing<Atomics> {
  template <class... Anything>
  static void mend(Anything&&...) {}
};

// With a planted bug: what is full behind a slot that was never filled stays there.
template <class Atomics>
struct RingThatMovesNothing : MagazineRing<Atomics> {
  template <class Word, class TurnOf, class Move>
  static void mend(Word& given, Word& taken, unsigned shift, TurnOf&& turn_of, Move&&) {
    MagazineRing<Atomics>::mend(given, taken, shift, turn_of, [](std::uint64_t, std::uint64_t) {});
  }
};

// The depot's ring, two slots of it. What was put into it comes out once, the oldest first, and no slot is lost.
template <class Atomics, template <class> class Tested>
struct Ring {
  using Word = typename Atomics::template atomic<std::uint64_t>;
  static constexpr unsigned shift = 1;
  Word given, taken;
  std::array<Word, 2> turns;
  std::array<Plain<int>, 2> contents;  // of a slot: 0 while it is empty
  int put = 0;
  int came = 0;

  auto turn() {
    return [this](std::uint64_t slot) -> Word& { return turns[slot]; };
  }
  bool give() {
    return Tested<Atomics>::give(given, shift, turn(), [this](std::uint64_t slot) {
      if (contents[slot].read() != 0) {
        throw Violation("a full magazine was filled again");
      }
      contents[slot].write(++put);
    });
  }
  bool take() {
    return Tested<Atomics>::take(taken, shift, turn(), [this](std::uint64_t slot) {
      const int what = contents[slot].read();
      if (what <= came) {
        throw Violation("a magazine was taken before its blocks were visible, twice, or behind a younger one");
      }
      contents[slot].write(0);
      came = what;
    });
  }
  void take_all(const std::vector<int>& expected) {
    std::vector<int> all;
    while (take()) {
      all.push_back(came);
    }
    if (all != expected) {
      throw Violation("a full magazine was lost, or came twice");
    }
  }
  // As many as there are slots, round twice.
  void expect_whole() {
    for (int round = 0; round < 2; ++round) {
      if (!give() || !give() || give()) {
        throw Violation("a slot was lost");
      }
      take_all({put - 1, put});
    }
  }
  // In a child nobody goes on who was in the middle of a slot: it loses what that thread had, no more.
  void mend() {
    constexpr auto relaxed = std::memory_order_relaxed;
    std::vector<int> full;
    for (std::uint64_t at = taken.load(relaxed); at < given.load(relaxed); ++at) {
      if (turns[at & 1].load(relaxed) == (at >> shift) * 2 + 1) {
        full.push_back(contents[at & 1].read());
      }
    }
    Tested<Atomics>::mend(given, taken, shift, turn(),
                          [this](std::uint64_t from, std::uint64_t to) { contents[to].write(contents[from].read()); });
    for (std::uint64_t at = given.load(relaxed); at < taken.load(relaxed) + turns.size(); ++at) {
      contents[at & 1].write(0);
    }
    take_all(full);
    expect_whole();
  }
};

template <class Atomics, template <class> class Tested = MagazineRing>
Explorer::Program depot() {
  auto ring = std::make_shared<Ring<Atomics, Tested>>();
  ring->give();
  return {{[ring] {
             ring->give();
             ring->give();
           },
           [ring] {
             ring->take();
             ring->give();
           },
           [ring] {
             ring->take();
             ring->take();
           }},
          [ring] {
            while (ring->take()) {
            }
            if (ring->came != ring->put) {
              throw Violation("a full magazine was lost");
            }
            ring->expect_whole();
          }};
}

// The process forks at any moment; of the parent's threads nobody is in the child.
template <template <class> class Tested = MagazineRing>
Explorer::Program depot_at_a_fork() {
  auto ring = std::make_shared<Ring<ModelAtomics, Tested>>();
  ring->give();
  return {{[ring] {
             ring->give();
             ring->give();
           },
           [ring] {
             ring->take();
             ring->give();
           },
           [ring] { ring->take(); }, [ring] { running->end_in([ring] { ring->mend(); }); }},
          [] {}};
}

TEST(HeapProtocols, no_magazine_is_taken_twice_or_lost_under_all_interleavings) {
  SKIP_UNDER_SANITIZERS();
  EXPECT_EQ(Explorer(3).explore([] { return depot<ModelAtomics>(); }).objection(), "");
}

TEST(HeapProtocols, of_a_ring_a_forked_child_loses_only_what_a_thread_was_handling_whenever_it_forks) {
  SKIP_UNDER_SANITIZERS();
  EXPECT_EQ(Explorer(3).explore(depot_at_a_fork<>).objection(), "");
}

TEST(HeapProtocols, the_check_of_the_depot_finds_each_planted_bug) {
  EXPECT_NE(Explorer(2).explore([] { return depot<AtomicsWithoutRelease>(); }).violation, "");
  EXPECT_NE(Explorer(2).explore([] { return depot<ModelAtomics, RingWithoutClaim>(); }).violation, "");
  EXPECT_NE(Explorer(2).explore([] { return depot<ModelAtomics, RingWithoutRounds>(); }).violation, "");
  EXPECT_NE(Explorer(2).explore(depot_at_a_fork<RingThatStaysTorn>).violation, "");
  EXPECT_NE(Explorer(2).explore(depot_at_a_fork<RingThatMovesNothing>).violation, "");
}

// A signal handler forks while it interrupts the one who fills a slot, and returns in the child: what goes on there
// after the ring was mended may be lost, but nobody looks for a slot for ever.
TEST(RingAfterFork, who_goes_on_in_the_child_where_a_handler_forked_keeps_nobody_waiting) {
  Ring<StandardAtomics, MagazineRing> ring;
  const auto ignore = [](auto...) {};
  const auto mend = [&] { MagazineRing<>::mend(ring.given, ring.taken, 1, ring.turn(), ignore); };
  const auto take_all = [&] {
    while (MagazineRing<>::take(ring.taken, 1, ring.turn(), ignore)) {
    }
  };
  const auto give = [&](auto fill) { return MagazineRing<>::give(ring.given, 1, ring.turn(), fill); };
  give(ignore);
  EXPECT_TRUE(give([&](std::uint64_t) { mend(); }));
  give(ignore);
  take_all();
  give(ignore);
  mend();
  take_all();
  for (int each = 0; each < 2; ++each) {
    EXPECT_TRUE(give(ignore));
  }
  EXPECT_FALSE(give(ignore));
}

// Parking: a thread ends while another frees one of its blocks, a third begins and takes over its heap, and the
// janitor sweeps what is parked. `Early`, a planted bug: an owner parks its heap before it has stopped using it.
template <class Atomics, bool Early = false>
Explorer::Program parking() {
  using Word = typename Atomics::template atomic<std::uint64_t>;
  using Link = typename Atomics::template atomic<std::uint32_t>;
  struct State {
    ParkedHeaps<Atomics> parked;
    std::array<Link, 2> parked_next;
    Plain<int> used;  // of the heap's one slab, written by whoever owns the heap
    Word remote;
    Link oldest, pending, pending_next[2];
    int owners = 0;

    auto link() {
      return [this](std::uint32_t index) -> Link& { return parked_next[index]; };
    }
    // What a new owner does, a thread or the janitor.
    void take_over(std::uint32_t index) {
      if (index == 0) {
        return;
      }
      if (++owners != 1) {
        throw Violation("a heap has two owners");
      }
      if (used.read() < 1 || used.read() > 2) {
        throw Violation("a heap was taken over before its last owner's writes were visible");
      }
      adopt();
      stop_using();
    }
    void stop_using() {
      if (Early) {
        parked.park(1, link());
        adopt();
      }
      --owners;
      if (!Early) {
        parked.park(1, link());
      }
    }
    void adopt() {
      if (PendingStack<Atomics>::take(pending) != 0) {
        const RemoteBatch batch = RemoteList<Atomics>::adopt(remote, oldest);
        used.write(used.read() - static_cast<int>(batch.count));
      }
    }
  };
  auto state = std::make_shared<State>();
  return {{[state] {  // the owner allocates two blocks, then ends
             ++state->owners;
             state->used.write(2);
             state->stop_using();
           },
           [state] {  // frees one of them
             if (RemoteList<Atomics>::push(state->remote, state->oldest, 1, [](std::uint32_t) {})) {
               PendingStack<Atomics>::push(state->pending, 1, state->pending_next[1]);
             }
           },
           [state] { state->take_over(state->parked.take(state->link())); },  // begins
           [state] {  // the janitor, two rounds: in one of them the stacks change roles
             state->take_over(state->parked.take_to_sweep(state->link()));
             state->take_over(state->parked.take_to_sweep(state->link()));
           }},
          [state] {
            if (state->parked.take(state->link()) != 1) {
              throw Violation("a parked heap was lost");
            }
            state->adopt();
            if (state->used.read() != 1) {
              throw Violation("a remote free to a parked heap was lost");
            }
          }};
}

TEST(HeapProtocols, a_parked_heap_has_one_owner_and_loses_no_remote_free_under_all_interleavings) {
  SKIP_UNDER_SANITIZERS();
  EXPECT_EQ(Explorer(2).explore([] { return parking<ModelAtomics>(); }).objection(), "");
}

TEST(HeapProtocols, the_check_of_parking_finds_a_forgotten_release) {
  EXPECT_NE(Explorer(3).explore([] { return parking<AtomicsWithoutRelease>(); }).violation, "");
}

TEST(HeapProtocols, the_check_of_parking_finds_an_owner_that_goes_on_using_the_heap) {
  EXPECT_EQ(Explorer(2).explore([] { return parking<ModelAtomics, true>(); }).violation, "a heap has two owners");
}

// Three threads that each look once; who gets the lock writes what it guards.
template <class Atomics>
Explorer::Program page_lock() {
  struct State {
    BasicPageLock<Atomics> lock;
    Plain<int> guarded;
    int entered = 0;

    void enter() {
      if (lock.try_lock()) {
        guarded.write(guarded.read() + 1);
        ++entered;
        lock.unlock();
      }
    }
  };
  auto state = std::make_shared<State>();
  return {{[state] { state->enter(); }, [state] { state->enter(); }, [state] { state->enter(); }}, [state] {
            if (state->entered == 0 || state->guarded.read() != state->entered) {
              throw Violation("the page lock let two in, or none");
            }
          }};
}

TEST(HeapProtocols, the_page_lock_lets_one_in_under_all_interleavings) {
  SKIP_UNDER_SANITIZERS();
  EXPECT_EQ(Explorer(4).explore(page_lock<ModelAtomics>).objection(), "");
}

TEST(HeapProtocols, the_check_of_the_page_lock_finds_a_forgotten_release) {
  EXPECT_NE(Explorer(2).explore(page_lock<AtomicsWithoutRelease>).violation, "");
}

}  // namespace
