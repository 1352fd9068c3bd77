// The threads that a part of the library knows: a state for each, how it passes from a thread that ends to one that
// begins, and what happens to it when the system does not tell of the end.
//
// A key's destructor tells of it (base::ThreadExit). Destructors of other keys may run after ours and allocate again,
// also in the last round that the system has for them: then no call tells of the end. A thread that enters again so
// late is listed with its number, and who enters next takes over the states of those that are gone.
#pragma once

#include <atomic>
#include <mutex>

#include "base/atomic.hpp"
#include "base/process.hpp"
#include "base/threads.hpp"

namespace blockyard::threads {

/// What tells of the ends of threads that have a State: all that heaps need, which wait for their threads without a
/// lock (heap/front/heap_table.hpp). One for each kind of State.
template <class State>
class ThreadEnds {
 public:
  /// Once, before any enter(): `at_exit` is called with its value when a thread ends. False: there is no key for it.
  bool open(base::ThreadExit::Callback at_exit) { return exit_.open(at_exit); }
  /// The calling thread has the state from now on. False: it has left once, or there is no key, so that perhaps nobody
  /// tells of its end. May allocate.
  bool enter(State* state) { return exit_.set(state) && !has_left_; }
  /// The calling thread ends.
  void leave() { has_left_ = true; }
  /// Whether it has left once: what it holds from then on may be lost.
  static bool has_left() { return has_left_; }
  /// See base::ThreadExit.
  bool enter_may_allocate() const { return exit_.set_may_allocate(); }

 private:
  base::ThreadExit exit_;
  static inline constinit thread_local bool has_left_ __attribute__((tls_model("initial-exec"))) = false;
};

/// What a state of a Registry derives from.
template <class State>
struct Registered {
  State* next_parked = nullptr;  ///< or, of a late thread's, the next of such
  State* next_known = nullptr;   ///< links all states ever made
  int late_thread = 0;           ///< the number of a thread whose end may come unnoticed; 0: of no such
};

/// One for each kind of State. Its owner has a lock for it, which all but enter(), known() and those of the calling
/// thread alone need. Nothing here is ever destroyed.
template <class State, class Atomics = base::StandardAtomics, class Ends = ThreadEnds<State>>
class Registry : private Ends {
 public:
  using Ends::has_left;

  struct Taken {
    State* state;
    bool was_lost;  ///< its thread's end came unnoticed: the owner puts away what it left
  };

  /// A state for a thread: of one that has ended, or what make() returns, which may be null. `at_exit` is called with
  /// the state when the thread ends. O(1).
  template <class Make>
  Taken take(base::ThreadExit::Callback at_exit, Make&& make) {
    Ends::open(at_exit);
    if (State* const lost = take_lost(); lost != nullptr) {
      return {lost, true};
    }
    State* state = parked();
    if (state != nullptr) {
      parked_.store(state->next_parked, std::memory_order_relaxed);
    } else if (state = make(); state != nullptr) {
      state->next_known = known_.load(std::memory_order_relaxed);
      known_.store(state, std::memory_order_release);
    }
    return {state, false};
  }

  /// The calling thread has the state from now on. Without the lock, since it may allocate.
  template <class Lock>
  void enter(State* state, Lock& lock) {
    if (!Ends::enter(state)) {
      const std::lock_guard hold(lock);
      state->late_thread = base::thread_id();
      state->next_parked = late_;
      late_ = state;
    }
  }

  /// The calling thread ends: its state waits for the next to begin. O(1), but for late threads.
  void park(State* state) {
    Ends::leave();
    if (state->late_thread != 0) {
      State** place = &late_;
      while (*place != nullptr && *place != state) {
        place = &(*place)->next_parked;
      }
      if (*place != nullptr) {  // else it comes of before a fork
        *place = state->next_parked;
      }
      state->late_thread = 0;
    }
    state->next_parked = parked();
    parked_.store(state, std::memory_order_relaxed);
  }

  /// In a forked child: none of the parent's other threads is there, and the one that is has another number.
  void forget_late() { late_ = nullptr; }

  /// The state parked last, which links to the others by next_parked. Whether there is one needs no lock.
  State* parked() const { return parked_.load(std::memory_order_relaxed); }
  /// The newest of all states, which links to the others by next_known.
  State* known() const { return known_.load(std::memory_order_acquire); }

 private:
  // Looks at a few late threads, the newest first.
  State* take_lost() {
    State** place = &late_;
    for (unsigned left = 8; *place != nullptr && left > 0; --left) {
      State* const state = *place;
      if (base::thread_has_ended(state->late_thread)) {
        *place = state->next_parked;
        state->late_thread = 0;
        return state;
      }
      place = &state->next_parked;
    }
    return nullptr;
  }

  typename Atomics::template atomic<State*> parked_{nullptr};  // written under the lock
  typename Atomics::template atomic<State*> known_{nullptr};
  State* late_ = nullptr;
};

}  // namespace blockyard::threads
