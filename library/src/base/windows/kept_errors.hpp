// The calling thread's errors stay as they are, whatever the library or the recorder asks the system meanwhile.
#pragma once

#include "base/kept_errno.hpp"
#include "base/windows/windows.hpp"

namespace blockyard::base {

class KeptErrors {
 public:
  KeptErrors() = default;
  ~KeptErrors() { SetLastError(last_); }
  KeptErrors(const KeptErrors&) = delete;
  KeptErrors& operator=(const KeptErrors&) = delete;

 private:
  const KeptErrno errno_;
  const DWORD last_ = GetLastError();
};

}  // namespace blockyard::base
