// The heap's lock-free protocols, their shipped source, under every interleaving of a few threads; and each check shown
// to find a planted bug.
#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <set>

#include "heap/index_stack.hpp"
#include "heap/page_lock.hpp"
#include "heap/parked_heaps.hpp"
#include "heap/pending_stack.hpp"
#include "heap/remote_list.hpp"
#include "heap/shelves.hpp"
#include "interleave/explorer.hpp"

namespace {

using namespace blockyard::heap;
using namespace interleave;

// Millions of interleavings, the same in every build, minutes long under a sanitizer; what is planted is looked for
// there too.
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
#define SKIP_UNDER_SANITIZERS() GTEST_SKIP() << "skipped: explores the same states as the release build, far slower"
#else
#define SKIP_UNDER_SANITIZERS() static_assert(true)
#endif

// Two slabs of one owner. Two threads free two blocks each; the owner adopts meanwhile and once more at the end.
template <class Atomics>
Explorer::Program remote_free() {
  using Word = typename Atomics::template atomic<std::uint64_t>;
  using Link = typename Atomics::template atomic<std::uint32_t>;
  struct State {
    std::array<Word, 3> remote;  // slab 0 is "none"
    std::array<Link, 3> oldest;
    std::array<Link, 3> pending_next;
    Link pending;
    std::array<std::array<Plain<std::uint32_t>, 4>, 3> link;  // of block unit u in slab s
    std::array<std::array<Plain<int>, 4>, 3> contents;        // what the program wrote before it freed
    std::multiset<std::pair<std::uint32_t, std::uint32_t>> adopted;

    void free(std::uint32_t slab, std::uint32_t unit) {
      contents[slab][unit].write(7);
      const bool announce = RemoteList<Atomics>::push(remote[slab], oldest[slab], unit,
                                                      [&](std::uint32_t next) { link[slab][unit].write(next); });
      if (announce) {
        PendingStack<Atomics>::push(pending, slab, pending_next[slab]);
      }
    }
    void adopt_all() {
      std::uint32_t slab = PendingStack<Atomics>::take(pending);
      while (slab != 0) {
        const std::uint32_t next = pending_next[slab].load(std::memory_order_relaxed);
        const RemoteBatch batch = RemoteList<Atomics>::adopt(remote[slab], oldest[slab]);
        if (batch.count == 0) {
          throw Violation("a slab was announced without a remote free");
        }
        std::uint32_t unit = batch.first;
        for (std::uint32_t left = batch.count; left > 0; --left) {
          if (unit == 0 || unit > 3) {
            throw Violation("a remote list is shorter than its count");
          }
          if (contents[slab][unit].read() != 7) {
            throw Violation("a block was adopted before its last write was visible");
          }
          adopted.emplace(slab, unit);
          if ((left == 1) != (unit == batch.last)) {
            throw Violation("a remote list ends with another block than the one that was freed first");
          }
          unit = link[slab][unit].read();
        }
        if (unit != 0) {
          throw Violation("a remote list is longer than its count");
        }
        slab = next;
      }
    }
  };
  auto state = std::make_shared<State>();
  return {{[state] {
             state->free(1, 1);
             state->free(2, 1);
           },
           [state] {
             state->free(1, 2);
             state->free(1, 3);
           },
           [state] { state->adopt_all(); }},
          [state] {
            state->adopt_all();
            if (state->adopted != decltype(state->adopted){{1, 1}, {1, 2}, {1, 3}, {2, 1}}) {
              throw Violation("a remote free was lost or came twice");
            }
          }};
}

TEST(HeapProtocols, EveryRemoteFreeIsAdoptedOnceUnderAllInterleavings) {
  SKIP_UNDER_SANITIZERS();
  const Explorer::Result result = Explorer(4).explore(remote_free<ModelAtomics>);
  EXPECT_EQ(result.violation, "");
  EXPECT_TRUE(result.complete);
  RecordProperty("schedules", std::to_string(result.schedules));
}

TEST(HeapProtocols, TheCheckOfRemoteFreesFindsAForgottenRelease) {
  EXPECT_NE(Explorer(2).explore(remote_free<AtomicsWithoutRelease>).violation, "");
}

TEST(HeapProtocols, TheCheckOfRemoteFreesFindsATornExchange) {
  EXPECT_NE(Explorer(2).explore(remote_free<AtomicsWithTornExchange>).violation, "");
}

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

TEST(HeapProtocols, NoReadySlabIsHandedOutTwiceOrLostUnderAllInterleavings) {
  SKIP_UNDER_SANITIZERS();
  const Explorer::Result result = Explorer(4).explore(ready_stack<ModelAtomics>);
  EXPECT_EQ(result.violation, "");
}

TEST(HeapProtocols, TheCheckOfTheReadyStackFindsAMissingVersion) {
  EXPECT_NE(Explorer(3).explore(ready_stack<AtomicsWithoutVersion>).violation, "");
}

TEST(HeapProtocols, TheCheckOfTheReadyStackFindsAForgottenRelease) {
  EXPECT_NE(Explorer(3).explore(ready_stack<AtomicsWithoutRelease>).violation, "");
}

// What empties the corners, with a planted bug: one look in vain, and nobody looks again.
template <class Atomics>
struct ShelvesForgottenAtOnce : Shelves<Atomics> {
  static void found_none(typename Shelves<Atomics>::Word& filled) { filled.store(0, std::memory_order_relaxed); }
};

// The depot: two cores hand two magazines to and fro, while the janitor takes back what waits. What was put into a
// magazine comes out of it once, and nothing stays behind.
template <class Atomics, template <class> class Tested = Shelves>
Explorer::Program depot() {
  using Link = typename Atomics::template atomic<std::uint32_t>;
  struct State {
    std::array<typename Shelves<Atomics>::Corner, 2> corners;
    Link filled;
    std::array<Link, 3> links;
    std::array<Plain<int>, 3> contents;  // of a magazine: 0 while it is empty
    int put = 0;
    int taken = 0;

    auto link() {
      return [this](std::uint32_t index) -> Link& { return links[index]; };
    }
    void give(unsigned core) {
      if (const std::uint32_t index = Tested<Atomics>::take_empty(corners, core, link()); index != 0) {
        if (contents[index].read() != 0) {
          throw Violation("a full magazine was taken for an empty one, or an empty one twice");
        }
        contents[index].write(1);
        ++put;
        Tested<Atomics>::give_full(corners, filled, core, index, link());
      }
    }
    bool take(unsigned core) {
      const std::uint32_t index = Tested<Atomics>::take_full(corners, filled, core, link());
      if (index != 0) {
        if (contents[index].read() != 1) {
          throw Violation("a magazine was taken before its blocks were visible, or twice");
        }
        contents[index].write(0);
        ++taken;
        Tested<Atomics>::give_empty(corners, core, index, link());
      }
      return index != 0;
    }
    void empty_out() {
      if (!take(0)) {
        Tested<Atomics>::found_none(filled);
      }
    }
  };
  auto state = std::make_shared<State>();
  state->filled.store(2, std::memory_order_relaxed);  // something was put down before
  Tested<Atomics>::give_empty(state->corners, 0, 1, state->link());
  Tested<Atomics>::give_empty(state->corners, 1, 2, state->link());
  return {{[state] { state->give(0); },
           [state] {
             state->take(1);
             state->give(1);
           },
           [state] {
             state->empty_out();
             state->empty_out();
           }},
          [state] {
            while (state->take(0)) {
            }
            if (state->taken != state->put) {
              throw Violation("a full magazine was lost");
            }
            std::set<std::uint32_t> empty;
            while (const std::uint32_t index = Tested<Atomics>::take_empty(state->corners, 0, state->link())) {
              empty.insert(index);
            }
            if (empty != std::set<std::uint32_t>{1, 2}) {
              throw Violation("an empty magazine was lost");
            }
          }};
}

TEST(HeapProtocols, NoMagazineIsTakenTwiceOrLostUnderAllInterleavings) {
  SKIP_UNDER_SANITIZERS();
  const Explorer::Result result = Explorer(3).explore([] { return depot<ModelAtomics>(); });
  EXPECT_EQ(result.violation, "");
  EXPECT_TRUE(result.complete);
  RecordProperty("schedules", std::to_string(result.schedules));
}

TEST(HeapProtocols, TheCheckOfTheDepotFindsAForgottenRelease) {
  EXPECT_NE(Explorer(2).explore([] { return depot<AtomicsWithoutRelease>(); }).violation, "");
}

TEST(HeapProtocols, TheCheckOfTheDepotFindsAMagazineThatNobodyLooksForAgain) {
  EXPECT_NE(Explorer(3).explore([] { return depot<ModelAtomics, ShelvesForgottenAtOnce>(); }).violation, "");
}

// Parking: a thread ends while another frees one of its blocks, a third begins and takes over its heap, and the
// janitor sweeps what is parked.
template <class Atomics>
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
      --owners;
      parked.park(1, link());
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
             --state->owners;
             state->parked.park(1, state->link());
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

TEST(HeapProtocols, AParkedHeapHasOneOwnerAndLosesNoRemoteFreeUnderAllInterleavings) {
  SKIP_UNDER_SANITIZERS();
  const Explorer::Result result = Explorer(2).explore(parking<ModelAtomics>);
  EXPECT_EQ(result.violation, "");
  EXPECT_TRUE(result.complete);
}

TEST(HeapProtocols, TheCheckOfParkingFindsAForgottenRelease) {
  EXPECT_NE(Explorer(3).explore(parking<AtomicsWithoutRelease>).violation, "");
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

TEST(HeapProtocols, ThePageLockLetsOneInUnderAllInterleavings) {
  SKIP_UNDER_SANITIZERS();
  const Explorer::Result result = Explorer(4).explore(page_lock<ModelAtomics>);
  EXPECT_EQ(result.violation, "");
  EXPECT_TRUE(result.complete);
}

TEST(HeapProtocols, TheCheckOfThePageLockFindsAForgottenRelease) {
  EXPECT_NE(Explorer(2).explore(page_lock<AtomicsWithoutRelease>).violation, "");
}

}  // namespace
