// The calling thread's errors stay as they are, whatever the library or the recorder asks the system meanwhile.
#pragma once

#include <cerrno>

#include "base/windows/windows.hpp"

namespace blockyard::base {

class KeptErrors {
 public:
  KeptErrors() = default;
  ~KeptErrors() {
    errno = errno_;
    SetLastError(last_);
  }
  KeptErrors(const KeptErrors&) = delete;
  KeptErrors& operator=(const KeptErrors&) = delete;

 private:
  const int errno_ = errno;
  const DWORD last_ = GetLastError();
};

}  // namespace blockyard::base
