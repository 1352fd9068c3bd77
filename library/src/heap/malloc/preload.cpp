// What the preloaded library has and the linked one has not.
//
// A preloaded library's constructor runs after those of all others, some of which register handlers of fork there. The
// heap's must be registered before them, or a handler that allocates, or waits for a thread that does, never returns.
// So whoever registers the first registers ours too: pthread_atfork is a part of every program and library, and calls
// this. (A library that is linked with -z initfirst would run too early, before getenv works.)
#include <dlfcn.h>

#include <cerrno>

#include "base/threads.hpp"
#include "heap/api/start.hpp"

// It begins without a reserve. A program that links the heap chose it, and gets its reserve before main.
constinit bool blockyard::heap::begins_small = true;

#if defined(__GLIBC__)
using Handler = void (*)();
extern "C" __attribute__((visibility("default"))) int __register_atfork(Handler prepare, Handler parent, Handler child,
                                                                        void* library);

// Ours comes by here too, a second time, which registers it.
int __register_atfork(Handler prepare, Handler parent, Handler child, void* library) {
  blockyard::base::come_before_other_fork_handlers();
  using Register = int (*)(Handler, Handler, Handler, void*);
  const auto next = reinterpret_cast<Register>(dlsym(RTLD_NEXT, "__register_atfork"));
  return next == nullptr ? ENOMEM : next(prepare, parent, child, library);
}
#endif
