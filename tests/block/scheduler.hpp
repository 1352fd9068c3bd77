// A test scheduler: runs a few short threads in every interleaving with up to so many preemptions, with store buffers.
//
// Threads are fibers of one real thread. Before each access to shared memory a fiber stops, and the explorer chooses
// who goes on. A plain or relaxed store goes into the thread's store buffer, from which it reaches memory later, at any
// moment the explorer chooses, stores to different places in any order. A release (store or read-modify-write) first
// empties the thread's buffer. Reads are not reordered: an acquire is only checked as far as its release is. The search
// is depth-first over all choices.
#pragma once

#include <ucontext.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <stdexcept>
#include <utility>
#include <vector>

namespace blockyard::test {

class Scheduler {
 public:
  struct Result {
    std::size_t executions = 0;
    bool violated = false;
  };

  /// One execution's threads, and what must hold when all have ended.
  struct Scenario {
    std::vector<std::function<void()>> threads;
    std::function<bool()> holds;
  };

  /// Runs what `make` makes, afresh each time, in every way; stops at the first violation.
  static Result explore(const std::function<Scenario()>& make, unsigned preemptions, std::size_t limit = 2'000'000) {
    Scheduler scheduler(preemptions);
    Result result;
    do {
      const Scenario scenario = make();
      scheduler.run(scenario);
      ++result.executions;
      if (scheduler.failed_ || !scenario.holds()) {
        result.violated = true;
        return result;
      }
      if (result.executions == limit) {
        throw std::logic_error("the scenario has too many interleavings");
      }
    } while (scheduler.advance());
    return result;
  }

  static Scheduler* current() { return current_; }

  /// The running thread is about to touch shared memory.
  void stop() {
    if (running_ != none) {
      swapcontext(&fibers_[running_]->context, &main_);
    }
  }

  /// Buffers a store of the running thread; at once where nobody runs.
  void buffer(const void* place, std::function<void()> store) {
    if (running_ == none) {
      store();
    } else {
      fibers_[running_]->stores.push_back({place, std::move(store)});
    }
  }
  void drain() {
    if (running_ != none) {
      for (Store& store : fibers_[running_]->stores) {
        store.apply();
      }
      fibers_[running_]->stores.clear();
    }
  }
  /// The newest buffered value of a place as its own thread sees it: applied before the thread reads the place.
  void drain_own(const void* place) {
    if (running_ == none) {
      return;
    }
    std::deque<Store>& stores = fibers_[running_]->stores;
    for (std::size_t i = 0; i < stores.size();) {
      if (stores[i].place == place) {
        stores[i].apply();
        stores.erase(stores.begin() + static_cast<std::ptrdiff_t>(i));
      } else {
        ++i;
      }
    }
  }
  /// The scenario is violated.
  void fail() { failed_ = true; }

 private:
  static constexpr std::size_t none = ~std::size_t{0};
  static constexpr std::size_t stack_bytes = 64 * 1024;

  struct Store {
    const void* place;
    std::function<void()> apply;
  };
  struct Fiber {
    ucontext_t context{};
    std::vector<char> stack;
    std::function<void()> body;
    std::deque<Store> stores;
    bool done = false;
  };
  struct Choice {
    std::size_t taken;
    std::size_t options;
  };

  explicit Scheduler(unsigned preemptions) : preemptions_(preemptions) {}

  static void enter() {
    Scheduler& scheduler = *current_;
    Fiber& fiber = *scheduler.fibers_[scheduler.running_];
    fiber.body();
    fiber.done = true;
    swapcontext(&fiber.context, &scheduler.main_);
  }

  std::size_t choose(std::size_t options) {
    if (depth_ == choices_.size()) {
      choices_.push_back({0, options});
    }
    return choices_[depth_++].taken;
  }

  void resume(std::size_t thread) {
    running_ = thread;
    swapcontext(&main_, &fibers_[thread]->context);
    running_ = none;
  }

  void run(const Scenario& scenario) {
    current_ = this;
    depth_ = 0;
    failed_ = false;
    fibers_.clear();
    for (const std::function<void()>& body : scenario.threads) {
      auto fiber = std::make_unique<Fiber>();
      fiber->body = body;
      fiber->stack.resize(stack_bytes);
      getcontext(&fiber->context);
      fiber->context.uc_stack.ss_sp = fiber->stack.data();
      fiber->context.uc_stack.ss_size = fiber->stack.size();
      makecontext(&fiber->context, &Scheduler::enter, 0);
      fibers_.push_back(std::move(fiber));
    }
    unsigned left = preemptions_;
    std::size_t last = none;
    for (;;) {
      // Options: go on with the last thread, switch (a preemption unless it has ended), or let a buffered store reach
      // memory.
      std::vector<std::function<void()>> options;
      const bool last_runs = last != none && !fibers_[last]->done;
      if (last_runs) {
        options.push_back([&, last] { resume(last); });
      }
      if (!last_runs || left != 0) {
        for (std::size_t i = 0; i < fibers_.size(); ++i) {
          if (i != last && !fibers_[i]->done) {
            options.push_back([&, i, last_runs] {
              left -= last_runs ? 1 : 0;
              last = i;
              resume(i);
            });
          }
        }
      }
      for (const std::unique_ptr<Fiber>& fiber : fibers_) {
        for (std::size_t i = 0; i < fiber->stores.size(); ++i) {
          if (is_oldest_of_place(*fiber, i)) {
            options.push_back([&fiber, i] {
              fiber->stores[i].apply();
              fiber->stores.erase(fiber->stores.begin() + static_cast<std::ptrdiff_t>(i));
            });
          }
        }
      }
      if (options.empty()) {
        break;
      }
      options[choose(options.size())]();
    }
    current_ = nullptr;
  }

  static bool is_oldest_of_place(const Fiber& fiber, std::size_t at) {
    for (std::size_t i = 0; i < at; ++i) {
      if (fiber.stores[i].place == fiber.stores[at].place) {
        return false;
      }
    }
    return true;
  }

  // The next way to go; false when all have been gone.
  bool advance() {
    while (!choices_.empty() && choices_.back().taken + 1 == choices_.back().options) {
      choices_.pop_back();
    }
    if (choices_.empty()) {
      return false;
    }
    ++choices_.back().taken;
    return true;
  }

  static inline Scheduler* current_ = nullptr;

  unsigned preemptions_;
  std::vector<std::unique_ptr<Fiber>> fibers_;
  std::vector<Choice> choices_;
  std::size_t depth_ = 0;
  std::size_t running_ = none;
  bool failed_ = false;
  ucontext_t main_{};
};

/// A place in shared memory with std::atomic's members. `Weak` takes every order for relaxed: a planted bug.
template <class T, bool Weak = false>
class Atomic {
 public:
  explicit Atomic(T value = {}) : value_(value) {}

  T load(std::memory_order) const {
    if (Scheduler* const scheduler = Scheduler::current()) {
      scheduler->stop();
      scheduler->drain_own(this);
    }
    return value_;
  }
  void store(T value, std::memory_order order) {
    Scheduler* const scheduler = Scheduler::current();
    if (scheduler == nullptr) {
      value_ = value;
      return;
    }
    scheduler->stop();
    if (releases(order)) {
      scheduler->drain();
      value_ = value;
    } else {
      scheduler->buffer(this, [this, value] { value_ = value; });
    }
  }
  T exchange(T value, std::memory_order order) {
    prepare(order);
    return std::exchange(value_, value);
  }
  bool compare_exchange_strong(T& expected, T desired, std::memory_order order, std::memory_order) {
    prepare(order);
    if (value_ == expected) {
      value_ = desired;
      return true;
    }
    expected = value_;
    return false;
  }
  bool compare_exchange_weak(T& expected, T desired, std::memory_order order, std::memory_order failure) {
    return compare_exchange_strong(expected, desired, order, failure);
  }

 private:
  static bool releases(std::memory_order order) {
    return !Weak && (order == std::memory_order_release || order == std::memory_order_acq_rel ||
                     order == std::memory_order_seq_cst);
  }
  void prepare(std::memory_order order) {
    if (Scheduler* const scheduler = Scheduler::current()) {
      scheduler->stop();
      scheduler->drain_own(this);
      if (releases(order)) {
        scheduler->drain();
      }
    }
  }

  T value_;
};

}  // namespace blockyard::test
