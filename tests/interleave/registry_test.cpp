// How threads' states pass on, in pools and lifetimes: the shipped source under every interleaving of a few threads;
// and each check shown to find a planted bug.
#include "threads/registry.hpp"

#include <gtest/gtest.h>

#include <deque>
#include <memory>
#include <mutex>

#include "interleave/explorer.hpp"

namespace {

using namespace interleave;

// The system tells of every end.
struct ToldEnds {
  static bool open(blockyard::base::ThreadExit::Callback) { return true; }
  template <class State>
  static bool enter(State*) {
    return true;
  }
  static void leave() {}
  static bool has_left() { return false; }
};

// A planted bug: the owner forgot the lock.
struct NoLock {
  void lock() {}
  void unlock() {}
};

// A planted bug: a thread parks its state before it has stopped using it.
enum class Parks { at_the_end, too_early };

// Two threads live and end with a state, one of them twice; a third reads the figures of all states meanwhile. A state
// has one thread at a time, and is used again; what it counts is complete.
template <class Atomics, class Lock = ModelLock, Parks parks = Parks::at_the_end>
Explorer::Program thread_lives() {
  struct State;
  struct Link : Plain<State*> {
    Link& operator=(State* state) {
      this->write(state);
      return *this;
    }
    operator State*() { return this->read(); }
  };
  struct State {
    State* next_parked = nullptr;
    Link next_known;
    int late_thread = 0;
    Plain<int> made;   // 7: what is known was made
    Plain<int> lives;  // counted by its threads, one after the other
    int users = 0;
  };
  struct Process {
    Lock lock;
    blockyard::threads::Registry<State, Atomics, ToldEnds> registry;
    std::deque<State> states;

    void live() {
      State* state = nullptr;
      {
        const std::lock_guard hold(lock);
        state = registry
                    .take(nullptr,
                          [this] {
                            State& made = states.emplace_back();
                            made.made.write(7);
                            return &made;
                          })
                    .state;
      }
      registry.enter(state, lock);
      if (++state->users != 1) {
        throw Violation("a state has two threads");
      }
      state->lives.write(state->lives.read() + 1);
      if (parks == Parks::at_the_end) {
        --state->users;
      }
      {
        const std::lock_guard hold(lock);
        registry.park(state);
      }
      if (parks == Parks::too_early) {
        --state->users;
      }
    }
    int count_lives() {
      int lives = 0;
      for (State* state = registry.known(); state != nullptr; state = state->next_known) {
        if (state->made.read() != 7) {
          throw Violation("a state is known before it was made");
        }
        lives += state->lives.read();
      }
      return lives;
    }
  };
  auto process = std::make_shared<Process>();
  return {{[process] { process->live(); },
           [process] {
             process->live();
             process->live();
           },
           [process] { process->count_lives(); }},
          [process] {
            if (process->count_lives() != 3) {
              throw Violation("what a thread counted was lost");
            }
            std::size_t parked = 0;
            for (State* state = process->registry.parked(); state != nullptr; state = state->next_parked) {
              ++parked;
            }
            if (process->states.size() > 2 || parked != process->states.size()) {
              throw Violation("a parked state was lost, or not taken");
            }
          }};
}

TEST(Registry, a_state_has_one_thread_at_a_time_under_all_interleavings) {
  SKIP_UNDER_SANITIZERS();
  EXPECT_EQ(Explorer(3).explore([] { return thread_lives<ModelAtomics>(); }).objection(), "");
}

TEST(Registry, the_check_finds_a_thread_that_parks_its_state_before_it_has_stopped_using_it) {
  EXPECT_EQ(Explorer(2).explore([] { return thread_lives<ModelAtomics, ModelLock, Parks::too_early>(); }).violation,
            "a state has two threads");
}

TEST(Registry, the_check_finds_a_forgotten_lock) {
  EXPECT_NE(Explorer(2).explore([] { return thread_lives<ModelAtomics, NoLock>(); }).violation, "");
}

TEST(Registry, the_check_finds_a_forgotten_release) {
  EXPECT_EQ(Explorer(2).explore([] { return thread_lives<AtomicsWithoutRelease>(); }).violation,
            "a state is known before it was made");
}

}  // namespace
