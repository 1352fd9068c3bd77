// Where a thread may be made to call dlopen(): not inside the loader, malloc, fork() or a signal handler, for whose
// locks it would wait itself.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "record/linux/attach/stop.hpp"
#include "record/linux/attach/target.hpp"

namespace blockyard::record::attach {

/// The code of a program, as its files and its memory show it.
class Code {
 public:
  /// Throws journal::Error.
  explicit Code(const Target& target);
  ~Code();
  Code(const Code&) = delete;
  Code& operator=(const Code&) = delete;

  /// The address of what libc exports under this name; 0 for none.
  std::uint64_t in_libc(const char* name) const;
  /// libc's own return from signal handlers.
  std::uint64_t return_from_signal() const;
  /// Why the thread is at no such point; "" where it is.
  std::string refusal(const Stop& stop) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace blockyard::record::attach
