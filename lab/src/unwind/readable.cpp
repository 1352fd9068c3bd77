#include "unwind/readable.hpp"

#include <cerrno>

#include <sys/syscall.h>
#include <unistd.h>

namespace blockyard::unwind {

bool is_readable(std::uint64_t address) {
  // The kernel copies the new mask in before it refuses what to do with it.
  constexpr int no_such_change = -1;
  constexpr unsigned long mask_bytes = 8;
  const int saved = errno;
  errno = 0;
  syscall(SYS_rt_sigprocmask, no_such_change, address & ~(page_bytes - 1), nullptr, mask_bytes);
  const bool can_read = errno == EINVAL;
  errno = saved;
  return can_read;
}

}  // namespace blockyard::unwind
