// Calls of the C library that change what the calling thread may do, or that the system refuses a process with more
// threads than one: the background threads end for each. The C library makes a change of user in all threads that it
// knows, of which they are none. A namespace of users is for processes with one thread only. A sandbox holds for
// the thread that asks for it.
#include <dlfcn.h>
#include <grp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

#include <cstdarg>

#include "base/background_work.hpp"
#include "blockyard/detail/visibility.h"

namespace {

class WithoutBackgroundThreads {
 public:
  WithoutBackgroundThreads() = default;
  ~WithoutBackgroundThreads() {
    if (ended_) {
      blockyard::base::BackgroundWork::resume_all();
    }
  }
  WithoutBackgroundThreads(const WithoutBackgroundThreads&) = delete;
  WithoutBackgroundThreads& operator=(const WithoutBackgroundThreads&) = delete;

 private:
  const bool ended_ = blockyard::base::BackgroundWork::end_all();
};

// In a static program there is no next one, and the system's own call has to do.
template <class Function, class... Arguments>
long call_next(const char* name, long number, Arguments... arguments) {
  auto* const next = reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
  return next != nullptr ? next(arguments...) : syscall(number, arguments...);
}

}  // namespace

#define BY_CALLED_ALONE(name, number, parameters, ...)                              \
  BY_API int name parameters noexcept {                                             \
    const WithoutBackgroundThreads without;                                         \
    return static_cast<int>(call_next<int parameters>(#name, number, __VA_ARGS__)); \
  }

extern "C" {

BY_CALLED_ALONE(unshare, SYS_unshare, (int flags), flags)
BY_CALLED_ALONE(setns, SYS_setns, (int file, int kind), file, kind)
BY_CALLED_ALONE(setuid, SYS_setuid, (uid_t user), user)
BY_CALLED_ALONE(setgid, SYS_setgid, (gid_t group), group)
BY_CALLED_ALONE(setreuid, SYS_setreuid, (uid_t real, uid_t effective), real, effective)
BY_CALLED_ALONE(setregid, SYS_setregid, (gid_t real, gid_t effective), real, effective)
BY_CALLED_ALONE(setresuid, SYS_setresuid, (uid_t real, uid_t effective, uid_t saved), real, effective, saved)
BY_CALLED_ALONE(setresgid, SYS_setresgid, (gid_t real, gid_t effective, gid_t saved), real, effective, saved)
BY_CALLED_ALONE(setgroups, SYS_setgroups, (size_t count, const gid_t* groups), count, groups)
BY_CALLED_ALONE(capset, SYS_capset, (void* header, const void* data), header, data)

// Of these the system has no call of its own.
BY_CALLED_ALONE(seteuid, -1, (uid_t user), user)
BY_CALLED_ALONE(setegid, -1, (gid_t group), group)
BY_API int initgroups(const char* user, gid_t group) {
  const WithoutBackgroundThreads without;
  return static_cast<int>(call_next<int(const char*, gid_t)>("initgroups", -1, user, group));
}

BY_API int prctl(int option, ...) noexcept {
  va_list list;
  va_start(list, option);
  unsigned long values[4];
  for (unsigned long& value : values) {
    value = va_arg(list, unsigned long);
  }
  va_end(list);
  if (option == PR_SET_SECCOMP || option == PR_SET_NO_NEW_PRIVS) {
    blockyard::base::BackgroundWork::enter_sandbox();
  }
  return static_cast<int>(
      call_next<int(int, ...)>("prctl", SYS_prctl, option, values[0], values[1], values[2], values[3]));
}

}  // extern "C"
