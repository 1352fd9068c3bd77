// Thread ends and forks by way of POSIX.
#include "base/threads.hpp"

namespace blockyard::base {

bool ThreadExit::open(Callback callback) {
  open_ = pthread_key_create(&key_, callback) == 0;
  return open_;
}

void ThreadExit::set(void* value) const {
  if (open_) {
    pthread_setspecific(key_, value);
  }
}

bool around_fork(void (*prepare)(), void (*parent)(), void (*child)()) {
  return pthread_atfork(prepare, parent, child) == 0;
}

}  // namespace blockyard::base
