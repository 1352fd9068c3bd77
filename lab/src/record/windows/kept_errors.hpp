// Errors of the program's own stay as they are, whatever the recorder asks the system meanwhile.
#pragma once

#include <windows.h>

#include <cerrno>

namespace blockyard::record {

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

}  // namespace blockyard::record
