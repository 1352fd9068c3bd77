// The calling thread's errno.
#pragma once

#include <cerrno>
#include <cstddef>

namespace blockyard::base {

/// Null, for whoever failed to return: errno says why.
inline std::nullptr_t failed(int error) {
  errno = error;
  return nullptr;
}

/// It stays as it is while this lives, whatever the library asks the system meanwhile.
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
