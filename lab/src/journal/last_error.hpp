// What errno says, in words.
#pragma once

#include <cerrno>
#include <string>
#include <system_error>

namespace blockyard::journal {

/// Call it before anything else can change errno. Thread-safe, unlike strerror.
inline std::string last_error() { return std::generic_category().message(errno); }

}  // namespace blockyard::journal
