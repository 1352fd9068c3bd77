// Runs another program, and keeps what it says.
#pragma once

#include <cstdio>
#include <string>

#if __has_include(<sys/wait.h>)
#include <sys/wait.h>
#endif

namespace blockyard::testing {

struct Ended {
  int status;        ///< what it exited with; -1: it didn't
  std::string said;  ///< both streams
};

/// `setting`: NAME=VALUE for its environment, or nothing.
inline Ended run_program(const std::string& command, const std::string& setting = {}) {
#if __has_include(<sys/wait.h>)
  std::FILE* const pipe = popen((setting + " " + command + " 2>&1").c_str(), "r");
#else
  const std::string before = setting.empty() ? "" : "set " + setting + "&& ";
  std::FILE* const pipe = _popen((before + command + " 2>&1").c_str(), "r");
#endif
  Ended ended{-1, {}};
  if (pipe == nullptr) {
    return ended;
  }
  char part[4096];
  while (const std::size_t count = std::fread(part, 1, sizeof part, pipe)) {
    ended.said.append(part, count);
  }
#if __has_include(<sys/wait.h>)
  const int status = pclose(pipe);
  ended.status = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
#else
  ended.status = _pclose(pipe);
#endif
  return ended;
}

}  // namespace blockyard::testing
