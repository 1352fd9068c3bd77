// The calling thread's errno stays as it is, whatever the library asks the system meanwhile.
#pragma once

#include <cerrno>

namespace blockyard::base {

class KeptErrno {
 public:
  KeptErrno() = default;
  ~KeptErrno() { errno = value_; }
  KeptErrno(const KeptErrno&) = delete;
  KeptErrno& operator=(const KeptErrno&) = delete;

 private:
  const int value_ = errno;
};

}  // namespace blockyard::base
