// Explores the interleavings of a small concurrent program: all of them up to a number of preemptions, with stores that
// become visible late.
//
// A lock-free protocol is a template on its atomic types. Instantiated with ModelAtomics, its shipped source runs here.
// Each thread is a fibre, and before every atomic operation another thread may run. Stores wait in their thread's
// buffer, in one queue per location. Another thread sees them only when it reads the location and the explorer chooses
// so; a release operation makes all earlier stores of its thread visible first. So the explorer finds a protocol that
// publishes without release. It does not find a missing acquire, since loads read the newest visible value;
// ThreadSanitizer looks for those.
//
// The search is depth-first over the sequence of choices. It runs the program from its start for each sequence, so
// nothing but the choices may make the program behave differently.
#pragma once

#include <ucontext.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

// Millions of interleavings, the same in every build, minutes long under a sanitizer; what is planted is looked for
// there too.
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
#define SKIP_UNDER_SANITIZERS() GTEST_SKIP() << "skipped: explores the same states as the release build, far slower"
#else
#define SKIP_UNDER_SANITIZERS() static_assert(true)
#endif

namespace interleave {

class Explorer;
inline Explorer* running = nullptr;

/// Thrown by a program that sees what must never be; what() says what.
class Violation : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

class Explorer {
 public:
  struct Result {
    std::uint64_t schedules = 0;
    bool complete = true;   ///< false: stopped at the limit of schedules
    std::string violation;  ///< empty when none was found

    /// Empty only if every schedule was tried and none of them violates anything.
    [[nodiscard]] std::string objection() const { return complete ? violation : "not every schedule was tried"; }
  };

  /// One program: makes its shared state, hands over its threads, and checks the outcome.
  struct Program {
    std::vector<std::function<void()>> threads;
    std::function<void()> finally;  ///< runs alone, after all threads, with every store visible
  };

  explicit Explorer(int preemptions, std::uint64_t limit = 2'000'000) : preemptions_(preemptions), limit_(limit) {}

  /// Runs `make()` for every schedule until one violates or none is left.
  Result explore(const std::function<Program()>& make) {
    Result result;
    choices_.clear();
    do {
      if (result.schedules == limit_) {
        result.complete = false;
        return result;
      }
      ++result.schedules;
      run_once(make);
      if (!violation_.empty()) {
        result.violation = violation_;
        return result;
      }
    } while (advance());
    return result;
  }

  // For the model atomics.

  /// A point where another thread may run.
  void schedule_point() {
    if (current_ < 0) {
      return;
    }
    const std::vector<int> others = preempted_ < preemptions_ ? able(current_) : std::vector<int>();
    const std::size_t picked = choose(others.size() + 1);
    if (picked > 0) {
      ++preempted_;
      switch_to(others[picked - 1]);
    }
    if (++steps_ > 10'000) {
      throw Violation("a schedule runs for ever");
    }
  }

  /// Lets others run as long as `held_up` says so, which is no preemption.
  void wait_while(const std::function<bool()>& held_up) {
    if (current_ < 0 || !held_up()) {
      return;
    }
    Fibre& self = *fibres_[static_cast<std::size_t>(current_)];
    self.held_up = held_up;
    const std::vector<int> able = able_to_go_on();
    if (able.empty()) {
      throw Violation("every thread waits");
    }
    if (const int next = able[choose(able.size())]; next != current_) {
      switch_to(next);
    }
    self.held_up = nullptr;
  }

  /// Runs `last` alone, with every store visible, and ends the schedule: the child of a process that forks, which has
  /// none of its other threads.
  void end_in(const std::function<void()>& last) {
    current_ = -1;
    commit_all();
    last();
    throw Ended();
  }

  /// One of `count` ways to go on.
  std::size_t choose(std::size_t count) {
    if (count <= 1) {
      return 0;
    }
    if (position_ == choices_.size()) {
      choices_.push_back({0, count});
    }
    return choices_[position_++].picked;
  }

  struct Store {
    void* location;
    std::function<void()> commit;
  };

  void buffer(Store store) {
    if (current_ < 0) {
      store.commit();
    } else {
      fibres_[static_cast<std::size_t>(current_)]->stores.push_back(std::move(store));
    }
  }

  /// Makes the calling thread's stores to `location` visible; all of its stores when `location` is null (release).
  void commit_own(const void* location) {
    if (current_ >= 0) {
      commit(*fibres_[static_cast<std::size_t>(current_)], location);
    }
  }

  /// Before a read of `location`: waiting stores of other threads become visible if the explorer chooses so.
  void observe(const void* location) {
    for (std::size_t thread = 0; thread < fibres_.size(); ++thread) {
      if (static_cast<int>(thread) != current_ && waits(*fibres_[thread], location) &&
          (current_ < 0 || choose(2) == 1)) {
        commit(*fibres_[thread], location);
      }
    }
  }

 private:
  struct Fibre {
    ucontext_t context{};
    std::vector<char> stack = std::vector<char>(128 * 1024);
    std::function<void()> body;
    std::deque<Store> stores;
    std::function<bool()> held_up;  ///< while it waits
    bool done = false;
  };
  struct Ended {};
  struct Choice {
    std::size_t picked;
    std::size_t count;
  };

  static bool waits(const Fibre& fibre, const void* location) {
    for (const Store& store : fibre.stores) {
      if (store.location == location) {
        return true;
      }
    }
    return false;
  }

  static void commit(Fibre& fibre, const void* location) {
    for (auto store = fibre.stores.begin(); store != fibre.stores.end();) {
      if (location == nullptr || store->location == location) {
        store->commit();
        store = fibre.stores.erase(store);
      } else {
        ++store;
      }
    }
  }

  static void enter() {
    Explorer* const self = running;
    Fibre& fibre = *self->fibres_[static_cast<std::size_t>(self->current_)];
    try {
      fibre.body();
    } catch (const Violation& violation) {
      self->violation_ = violation.what();
    } catch (const Ended&) {
      self->ended_ = true;
    }
    fibre.done = true;
    self->leave();
  }

  void commit_all() {
    for (auto& fibre : fibres_) {
      commit(*fibre, nullptr);
    }
  }

  // Threads but `except` that are not done and wait for nothing.
  std::vector<int> able(int except) const {
    std::vector<int> found;
    for (int thread = 0; thread < static_cast<int>(fibres_.size()); ++thread) {
      const Fibre& fibre = *fibres_[static_cast<std::size_t>(thread)];
      if (thread != except && !fibre.done && !(fibre.held_up && fibre.held_up())) {
        found.push_back(thread);
      }
    }
    return found;
  }
  // All of those. No store stays in its buffer for ever: when nobody can go on, all become visible.
  std::vector<int> able_to_go_on() {
    std::vector<int> found = able(-1);
    if (found.empty()) {
      commit_all();
      found = able(-1);
    }
    return found;
  }

  // Goes on with some thread that is not done, or with the explorer when all are or one has failed.
  void leave() {
    const bool all_done = std::all_of(fibres_.begin(), fibres_.end(), [](const auto& fibre) { return fibre->done; });
    if (all_done || ended_ || !violation_.empty()) {
      setcontext(&main_);
    }
    const std::vector<int> left = able_to_go_on();
    if (left.empty()) {
      violation_ = "every thread waits";
      setcontext(&main_);
    }
    current_ = left[choose(left.size())];
    setcontext(&fibres_[static_cast<std::size_t>(current_)]->context);
  }

  void switch_to(int thread) {
    Fibre& from = *fibres_[static_cast<std::size_t>(current_)];
    current_ = thread;
    swapcontext(&from.context, &fibres_[static_cast<std::size_t>(thread)]->context);
  }

  void run_once(const std::function<Program()>& make) {
    running = this;
    current_ = -1;
    position_ = 0;
    preempted_ = 0;
    steps_ = 0;
    ended_ = false;
    violation_.clear();
    fibres_.clear();
    Program program = make();
    for (auto& body : program.threads) {
      auto fibre = std::make_unique<Fibre>();
      fibre->body = std::move(body);
      getcontext(&fibre->context);
      fibre->context.uc_stack.ss_sp = fibre->stack.data();
      fibre->context.uc_stack.ss_size = fibre->stack.size();
      fibre->context.uc_link = nullptr;
      makecontext(&fibre->context, &Explorer::enter, 0);
      fibres_.push_back(std::move(fibre));
    }
    current_ = static_cast<int>(choose(fibres_.size()));
    swapcontext(&main_, &fibres_[static_cast<std::size_t>(current_)]->context);
    current_ = -1;
    if (violation_.empty()) {
      commit_all();
      try {
        program.finally();
      } catch (const Violation& violation) {
        violation_ = violation.what();
      }
    }
    running = nullptr;
  }

  // The next sequence of choices in depth-first order; false when there is none.
  bool advance() {
    choices_.resize(position_);
    while (!choices_.empty()) {
      if (++choices_.back().picked < choices_.back().count) {
        return true;
      }
      choices_.pop_back();
    }
    return false;
  }

  int preemptions_;
  std::uint64_t limit_;
  std::vector<Choice> choices_;
  std::size_t position_ = 0;
  int preempted_ = 0;
  int steps_ = 0;
  int current_ = -1;
  bool ended_ = false;
  std::string violation_;
  std::vector<std::unique_ptr<Fibre>> fibres_;
  ucontext_t main_{};
};

inline bool releases(std::memory_order order) {
  return order == std::memory_order_release || order == std::memory_order_acq_rel || order == std::memory_order_seq_cst;
}

/// An ordinary variable of the program: its stores wait like relaxed ones, and no other thread runs before its
/// accesses.
template <class T>
class Plain {
 public:
  Plain() = default;
  explicit Plain(T value) : memory_(value) {}

  T read() {
    running->observe(this);
    running->commit_own(this);
    return memory_;
  }
  void write(T value) {
    running->buffer({this, [this, value] { memory_ = value; }});
  }

 private:
  T memory_{};
};

/// The part of std::atomic's interface that the protocols use.
template <class T>
class ModelAtomic {
 public:
  ModelAtomic() = default;
  explicit ModelAtomic(T value) : memory_(value) {}
  ModelAtomic(const ModelAtomic&) = delete;
  ModelAtomic& operator=(const ModelAtomic&) = delete;

  T load(std::memory_order) const {
    running->schedule_point();
    const_cast<ModelAtomic*>(this)->settle();
    return memory_;
  }

  void store(T value, std::memory_order order) {
    running->schedule_point();
    if (releases(order)) {
      running->commit_own(nullptr);
    }
    running->buffer({this, [this, value] { memory_ = value; }});
  }

  T exchange(T value, std::memory_order order) {
    return modify(order, [value](T) { return value; });
  }
  T fetch_add(T value, std::memory_order order) {
    return modify(order, [value](T before) { return static_cast<T>(before + value); });
  }

  bool compare_exchange_strong(T& expected, T wanted, std::memory_order success, std::memory_order) {
    running->schedule_point();
    settle();
    if (memory_ != expected) {
      expected = memory_;
      return false;
    }
    if (releases(success)) {
      running->commit_own(nullptr);
    }
    memory_ = wanted;
    return true;
  }
  bool compare_exchange_weak(T& expected, T wanted, std::memory_order success, std::memory_order failure) {
    return compare_exchange_strong(expected, wanted, success, failure);
  }

  /// What everybody sees: for Explorer::wait_while.
  T visible() const { return memory_; }

 private:
  template <class Change>
  T modify(std::memory_order order, Change&& change) {
    running->schedule_point();
    settle();
    if (releases(order)) {
      running->commit_own(nullptr);
    }
    const T before = memory_;
    memory_ = change(before);
    return before;
  }
  // A thread sees its own stores, and those of others as the explorer chooses.
  void settle() {
    running->observe(this);
    running->commit_own(this);
  }

  T memory_{};
};

/// A lock, in place of the C library's.
class ModelLock {
 public:
  void lock() {
    running->schedule_point();
    running->wait_while([this] { return taken_; });
    taken_ = true;
  }
  void unlock() {
    running->schedule_point();
    running->commit_own(nullptr);
    taken_ = false;
    running->schedule_point();
  }

 private:
  bool taken_ = false;
};

/// The atomic types with which a protocol's shipped source runs in the explorer.
struct ModelAtomics {
  template <class T>
  using atomic = ModelAtomic<T>;
};

/// A planted bug: no operation is a release.
template <class T>
class WithoutRelease : public ModelAtomic<T> {
 public:
  using ModelAtomic<T>::ModelAtomic;
  void store(T value, std::memory_order) { ModelAtomic<T>::store(value, std::memory_order_relaxed); }
  T exchange(T value, std::memory_order) { return ModelAtomic<T>::exchange(value, std::memory_order_relaxed); }
  bool compare_exchange_weak(T& expected, T wanted, std::memory_order, std::memory_order) {
    return ModelAtomic<T>::compare_exchange_weak(expected, wanted, std::memory_order_relaxed,
                                                 std::memory_order_relaxed);
  }
  bool compare_exchange_strong(T& expected, T wanted, std::memory_order, std::memory_order) {
    return ModelAtomic<T>::compare_exchange_strong(expected, wanted, std::memory_order_relaxed,
                                                   std::memory_order_relaxed);
  }
};
struct AtomicsWithoutRelease {
  template <class T>
  using atomic = WithoutRelease<T>;
};

/// A planted bug: a compare-and-exchange that is a load, a comparison and a store.
template <class T>
class TornExchange : public ModelAtomic<T> {
 public:
  using ModelAtomic<T>::ModelAtomic;
  bool compare_exchange_weak(T& expected, T wanted, std::memory_order success, std::memory_order failure) {
    const T seen = this->load(failure);
    if (seen != expected) {
      expected = seen;
      return false;
    }
    ModelAtomic<T>::exchange(wanted, success);
    return true;
  }
};
struct AtomicsWithTornExchange {
  template <class T>
  using atomic = TornExchange<T>;
};

/// A planted bug: only the low 32 bits are compared, so that a version counter above them protects nothing (ABA).
template <class T>
class WithoutVersion : public ModelAtomic<T> {
 public:
  using ModelAtomic<T>::ModelAtomic;
  bool compare_exchange_weak(T& expected, T wanted, std::memory_order success, std::memory_order failure) {
    for (;;) {
      T seen = expected;
      if (ModelAtomic<T>::compare_exchange_strong(seen, wanted, success, failure)) {
        return true;
      }
      if (static_cast<std::uint32_t>(seen) != static_cast<std::uint32_t>(expected)) {
        expected = seen;
        return false;
      }
      expected = seen;
    }
  }
};
struct AtomicsWithoutVersion {
  template <class T>
  using atomic = WithoutVersion<T>;
};

}  // namespace interleave
