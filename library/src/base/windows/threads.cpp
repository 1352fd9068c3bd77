// Thread ends by keys, sleep and wake-up by addresses. Nothing forks here.
#include "base/threads.hpp"

#include "base/windows/windows.hpp"

#include <algorithm>
#include <atomic>

#if __has_include(<pthread.h>)
#include <pthread.h>
#endif

#include "base/windows/kept_errors.hpp"

namespace blockyard::base {

void sleep_while(const void* word, std::uint32_t value, std::uint64_t at_most_ns) {
  constexpr std::uint64_t millisecond = 1'000'000;
  const KeptErrors kept;
  const std::uint64_t wanted = at_most_ns / millisecond + (at_most_ns % millisecond != 0 ? 1 : 0);
  WaitOnAddress(const_cast<void*>(word), &value, sizeof value,
                static_cast<DWORD>(std::min<std::uint64_t>(wanted, INFINITE - 1)));
}

void wake_one(const void* word) { WakeByAddressSingle(const_cast<void*>(word)); }

namespace {

#if __has_include(<pthread.h>)
// MinGW's thread_local variables go with a key of their own, and keys go in the order in which they were made: ours are
// made before any code has such a variable, so that they are still there when a thread's end is told. (Fiber-local
// storage is told later.)
using Key = pthread_key_t;
bool make_key(Key& key, void (*on_exit)(void*)) { return pthread_key_create(&key, on_exit) == 0; }
bool set_key(Key key, void* value) { return pthread_setspecific(key, value) == 0; }
#else
// Untried: fiber-local storage is told before a module's thread_local variables go.
using Key = DWORD;
bool make_key(Key& key, void (*on_exit)(void*)) { return (key = FlsAlloc(on_exit)) != FLS_OUT_OF_INDEXES; }
bool set_key(Key key, void* value) { return FlsSetValue(key, value) != 0; }
#endif

constexpr std::uint32_t most = 8;
constinit ThreadExit::Callback callbacks[most] = {};
constinit std::atomic<std::uint32_t> opened{0};
constinit Key keys[most] = {};
constinit std::uint32_t made = 0;

template <std::uint32_t Which>
void on_exit(void* value) {
  callbacks[Which](value);
}

// Who comes before it, in another constructor, calls it.
[[gnu::constructor(101)]] void make_keys() {
  constexpr void (*on_exits[most])(void*) = {on_exit<0>, on_exit<1>, on_exit<2>, on_exit<3>,
                                             on_exit<4>, on_exit<5>, on_exit<6>, on_exit<7>};
  while (made < most && make_key(keys[made], on_exits[made])) {
    ++made;
  }
}

}  // namespace

bool ThreadExit::open(Callback callback) {
  if (!tried_) {
    tried_ = true;
    make_keys();
    const std::uint32_t which = opened.fetch_add(1, std::memory_order_relaxed);
    if (which < made) {
      callbacks[which] = callback;
      key_ = keys[which];
      open_ = true;
    }
  }
  return open_;
}

bool ThreadExit::set(void* value) const { return open_ && set_key(key_, value); }

bool ThreadExit::set_may_allocate() const { return false; }  // and what the system allocates is not ours

bool is_only_thread() { return false; }

bool around_fork(void (*)(), void (*)(), void (*)(), void (*)()) { return true; }
void around_every_fork(void (*)(), void (*)(), void (*)()) {}
void come_before_other_fork_handlers() {}

}  // namespace blockyard::base
