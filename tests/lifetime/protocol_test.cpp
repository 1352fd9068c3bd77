// Who gets a chunk when its last block is freed: the shipped source in every interleaving, and planted bugs.
#include <gtest/gtest.h>

#include <memory>

#include "interleave/explorer.hpp"
#include "lifetime/chunk_store.hpp"

namespace {

using namespace interleave;
using blockyard::lifetime::ChunkCount;

// The owner ignores that the others freed all blocks before it retired the chunk.
template <class Atomics>
class RetiresBlindly : public ChunkCount<Atomics> {
 public:
  bool retire(std::int64_t live) {
    static_cast<void>(ChunkCount<Atomics>::retire(live));
    return false;
  }
};

// Publishes nothing when a block is freed.
struct RelaxedAtomics {
  template <class T>
  struct atomic : ModelAtomics::atomic<T> {
    using ModelAtomics::atomic<T>::atomic;
    T fetch_add(T value, std::memory_order) {
      return ModelAtomics::atomic<T>::fetch_add(value, std::memory_order_relaxed);
    }
  };
};

// An owner allocated three blocks, frees one itself and moves on. Two other threads free the rest. Exactly one thread
// must get the chunk, and it must see what was written to every block.
template <class Count>
Explorer::Program last_block() {
  struct State {
    Count count;
    Plain<int> written[3];
    int got = 0;
    void free_elsewhere(int block) {
      written[block].write(1);
      if (count.free_one()) {
        got_it();
      }
    }
    void got_it() {
      ++got;
      for (Plain<int>& contents : written) {
        if (contents.read() != 1) {
          throw Violation("the chunk went on before a write to one of its blocks was visible");
        }
      }
    }
  };
  auto state = std::make_shared<State>();
  return {{[state] {
             state->written[0].write(1);
             if (state->count.retire(2)) {
               state->got_it();
             }
           },
           [state] { state->free_elsewhere(1); }, [state] { state->free_elsewhere(2); }},
          [state] {
            if (state->got != 1) {
              throw Violation(state->got == 0 ? "nobody got the chunk" : "two got the chunk");
            }
          }};
}

TEST(ChunkCountProtocol, exactly_one_gets_the_chunk_and_sees_every_write) {
  const auto result = Explorer(3).explore([] { return last_block<ChunkCount<ModelAtomics>>(); });
  EXPECT_EQ(result.violation, "");
  EXPECT_TRUE(result.complete);
  EXPECT_GT(result.schedules, 20u);
}

TEST(ChunkCountProtocol, the_check_finds_an_owner_that_retires_blindly) {
  EXPECT_EQ(Explorer(3).explore([] { return last_block<RetiresBlindly<ModelAtomics>>(); }).violation,
            "nobody got the chunk");
}

TEST(ChunkCountProtocol, the_check_finds_a_free_that_publishes_nothing) {
  EXPECT_NE(Explorer(3).explore([] { return last_block<ChunkCount<RelaxedAtomics>>(); }).violation, "");
}

}  // namespace
