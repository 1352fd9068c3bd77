// The remote-free list of heap and pools, its shipped source, under every interleaving of a few threads; and each check
// shown to find a planted bug.
#include "base/remote_list.hpp"

#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <set>
#include <string>
#include <utility>

#include "interleave/explorer.hpp"

namespace {

using namespace blockyard::base;
using namespace interleave;

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
    std::array<int, 3> used{0, 3, 1};  // once none is left the owner gives the slab back

    void free(std::uint32_t slab, std::uint32_t unit) {
      contents[slab][unit].write(7);
      const bool announce = RemoteList<Atomics>::push(remote[slab], oldest[slab], unit,
                                                      [&](std::uint32_t next) { link[slab][unit].write(next); });
      if (announce) {
        if (used[slab] == 0) {
          throw Violation("a slab was given back while an announcement was on its way");
        }
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
          --used[slab];
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

TEST(RemoteList, every_remote_free_is_adopted_once_under_all_interleavings) {
  SKIP_UNDER_SANITIZERS();
  EXPECT_EQ(Explorer(4).explore(remote_free<ModelAtomics>).objection(), "");
}

TEST(RemoteList, the_check_finds_a_forgotten_release) {
  EXPECT_NE(Explorer(2).explore(remote_free<AtomicsWithoutRelease>).violation, "");
}

TEST(RemoteList, the_check_finds_a_torn_exchange) {
  EXPECT_NE(Explorer(2).explore(remote_free<AtomicsWithTornExchange>).violation, "");
}

// A slab whose owner, 0, has ended passes to owner 1, with its blocks, while two threads free two of these. Whoever
// takes the place of owner 0 drains its stack at the end. `Careless`: an owner adopts whatever its stack holds.
template <bool Careless>
Explorer::Program slab_that_changes_its_owner() {
  using Link = ModelAtomics::atomic<std::uint32_t>;
  struct State {
    ModelAtomics::atomic<std::uint64_t> remote;
    Link oldest;
    Link pending_next;
    std::array<Link, 2> pending;
    Link owner;
    std::array<Plain<std::uint32_t>, 3> link;
    std::array<int, 3> found{};

    void free(std::uint32_t block) {
      const std::uint32_t seen = owner.load(std::memory_order_relaxed);
      if (RemoteList<ModelAtomics>::push(remote, oldest, block, [&](std::uint32_t next) { link[block].write(next); })) {
        PendingStack<ModelAtomics>::push(pending[seen], 1, pending_next);
      }
    }
    void drain(std::uint32_t which) {
      if (PendingStack<ModelAtomics>::take(pending[which]) == 0) {
        return;
      }
      const std::uint32_t now = owner.load(std::memory_order_relaxed);
      if (now != which) {
        if (!Careless) {
          PendingStack<ModelAtomics>::push(pending[now], 1, pending_next);
          return;
        }
        throw Violation("an owner adopted blocks of a slab that is another's");
      }
      RemoteBatch batch = RemoteList<ModelAtomics>::adopt(remote, oldest);
      for (; batch.first != 0; batch.first = link[batch.first].read()) {
        ++found[batch.first];
      }
    }
  };
  auto state = std::make_shared<State>();
  return {{[state] {
             state->drain(0);
             state->owner.store(1, std::memory_order_release);
             state->drain(1);
           },
           [state] { state->free(1); }, [state] { state->free(2); }},
          [state] {
            state->drain(0);
            state->drain(1);
            if (state->found[1] != 1 || state->found[2] != 1) {
              throw Violation("a block was lost or found twice");
            }
          }};
}

TEST(RemoteList, frees_follow_a_slab_to_its_new_owner_under_all_interleavings) {
  SKIP_UNDER_SANITIZERS();
  EXPECT_EQ(Explorer(4).explore(slab_that_changes_its_owner<false>).objection(), "");
}

TEST(RemoteList, the_check_finds_an_owner_that_adopts_from_a_slab_of_another) {
  EXPECT_NE(Explorer(2).explore(slab_that_changes_its_owner<true>).violation, "");
}

}  // namespace
