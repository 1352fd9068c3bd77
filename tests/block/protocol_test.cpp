// The background thread gives a slab's memory back while the slab's owner may want it: the shipped source under every
// interleaving, and planted bugs.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <memory>

#include "block/give_back.hpp"
#include "interleave/explorer.hpp"

namespace {

using namespace interleave;
using blockyard::block::Unneeded;

enum class Planted { nothing, owner_does_not_wait, memory_is_not_claimed };

// An owner uses a slab again and again, and leaves it empty. The background thread looks at it each period.
template <class Atomics, Planted planted = Planted::nothing>
Explorer::Program slab_that_empties() {
  struct State {
    typename Atomics::template atomic<std::uint64_t> remote;
    Plain<int> memory;  // 0 when it was given back
    ModelAtomic<int> elsewhere;
    bool was_given_back = false;

    void use() {
      if (planted == Planted::owner_does_not_wait) {
        remote.exchange(0, std::memory_order_acq_rel);
      } else {
        blockyard::block::take_remote_word(remote, [this] {
          running->wait_while([this] { return blockyard::block::says(remote.visible(), Unneeded::giving_back); });
        });
      }
      memory.write(7);
      elsewhere.store(1, std::memory_order_release);  // the program goes on, and what it wrote is visible
      if (memory.read() != 7) {
        throw Violation("the memory of a slab in use was given back");
      }
      blockyard::block::mark_empty(remote);
    }
    void look() {
      using blockyard::block::move_on;
      const std::uint64_t word = remote.load(std::memory_order_acquire);
      if (blockyard::block::says(word, Unneeded::lately)) {
        move_on(remote, word, Unneeded::a_while);
      } else if (blockyard::block::says(word, Unneeded::a_while) &&
                 (planted == Planted::memory_is_not_claimed || move_on(remote, word, Unneeded::giving_back))) {
        memory.write(0);
        was_given_back = true;
        blockyard::block::end_giving_back(remote, true);
      }
    }
  };
  auto state = std::make_shared<State>();
  blockyard::block::mark_empty(state->remote);
  return {{[state] {
             state->use();
             state->use();
           },
           [state] {
             for (int period = 0; period < 4; ++period) {
               state->look();
             }
           }},
          [state] {
            state->look();
            state->look();
            if (!state->was_given_back) {
              throw Violation("the memory of a slab that nobody needs stays");
            }
          }};
}

TEST(GiveBackProtocol, a_slab_in_use_keeps_its_memory_and_an_empty_one_does_not_under_all_interleavings) {
  SKIP_UNDER_SANITIZERS();
  EXPECT_EQ(Explorer(4).explore([] { return slab_that_empties<ModelAtomics>(); }).objection(), "");
}

TEST(GiveBackProtocol, the_check_finds_an_owner_that_does_not_wait) {
  EXPECT_EQ(
      Explorer(2).explore([] { return slab_that_empties<ModelAtomics, Planted::owner_does_not_wait>(); }).violation,
      "the memory of a slab in use was given back");
}

TEST(GiveBackProtocol, the_check_finds_memory_that_was_not_claimed) {
  EXPECT_EQ(
      Explorer(2).explore([] { return slab_that_empties<ModelAtomics, Planted::memory_is_not_claimed>(); }).violation,
      "the memory of a slab in use was given back");
}

TEST(GiveBackProtocol, the_check_finds_a_forgotten_release) {
  EXPECT_EQ(Explorer(2).explore([] { return slab_that_empties<AtomicsWithoutRelease>(); }).violation,
            "the memory of a slab in use was given back");
}

}  // namespace
