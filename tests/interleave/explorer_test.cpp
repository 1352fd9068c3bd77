// The explorer on textbook programs whose outcomes are known.
#include "interleave/explorer.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <set>
#include <utility>

namespace {

using namespace interleave;
constexpr auto relaxed = std::memory_order_relaxed;

TEST(Explorer, finds_the_lost_update_of_a_load_and_a_store) {
  const auto program = [] {
    auto counter = std::make_shared<ModelAtomic<int>>();
    const auto increment = [counter] { counter->store(counter->load(relaxed) + 1, relaxed); };
    return Explorer::Program{{increment, increment}, [counter] {
                               if (counter->load(relaxed) != 2) {
                                 throw Violation("an update was lost");
                               }
                             }};
  };
  EXPECT_EQ(Explorer(2).explore(program).violation, "an update was lost");
}

TEST(Explorer, loses_no_update_of_an_atomic_addition) {
  const auto program = [] {
    auto counter = std::make_shared<ModelAtomic<int>>();
    const auto increment = [counter] { counter->fetch_add(1, relaxed); };
    return Explorer::Program{{increment, increment, increment}, [counter] {
                               if (counter->load(relaxed) != 3) {
                                 throw Violation("an update was lost");
                               }
                             }};
  };
  const Explorer::Result result = Explorer(3).explore(program);
  EXPECT_EQ(result.violation, "");
  EXPECT_TRUE(result.complete);
}

TEST(Explorer, sees_all_four_outcomes_of_store_buffering) {
  // x = 1; r1 = y  against  y = 1; r2 = x: both may read 0, because stores wait in buffers.
  std::set<std::pair<int, int>> outcomes;
  const auto program = [&outcomes] {
    struct State {
      ModelAtomic<int> x, y;
      int first = -1, second = -1;
    };
    auto state = std::make_shared<State>();
    return Explorer::Program{{[state] {
                                state->x.store(1, relaxed);
                                state->first = state->y.load(relaxed);
                              },
                              [state] {
                                state->y.store(1, relaxed);
                                state->second = state->x.load(relaxed);
                              }},
                             [state, &outcomes] { outcomes.emplace(state->first, state->second); }};
  };
  const Explorer::Result result = Explorer(2).explore(program);
  EXPECT_TRUE(result.complete);
  EXPECT_EQ(outcomes.size(), 4u);
}

TEST(Explorer, finds_that_message_passing_needs_release) {
  const auto program = [](std::memory_order order) {
    return [order] {
      struct State {
        Plain<int> message;
        ModelAtomic<int> ready;
      };
      auto state = std::make_shared<State>();
      return Explorer::Program{
          {[state, order] {
             state->message.write(42);
             state->ready.store(1, order);
           },
           [state] {
             if (state->ready.load(std::memory_order_acquire) == 1 && state->message.read() != 42) {
               throw Violation("the flag came before the message");
             }
           }},
          [] {}};
    };
  };
  EXPECT_EQ(Explorer(2).explore(program(std::memory_order_release)).violation, "");
  EXPECT_EQ(Explorer(2).explore(program(relaxed)).violation, "the flag came before the message");
}

TEST(Explorer, reports_an_endless_schedule_as_a_violation) {
  const auto program = [] {
    auto flag = std::make_shared<ModelAtomic<int>>();
    return Explorer::Program{{[flag] {
                               while (flag->load(relaxed) == 0) {
                               }
                             }},
                             [] {}};
  };
  EXPECT_EQ(Explorer(1).explore(program).violation, "a schedule runs for ever");
}

}  // namespace
