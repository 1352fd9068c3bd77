// The program to attach to, as /proc shows it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <sys/types.h>

namespace blockyard::record::attach {

struct Mapping {
  std::uint64_t begin;
  std::uint64_t end;
  bool is_writable;
  bool is_code;
  std::uint64_t offset;
  std::string path;  ///< as the program sees it; a file that was removed ends with " (deleted)"
};

class Target {
 public:
  explicit Target(pid_t pid) : pid_(pid) {}

  pid_t pid() const { return pid_; }
  std::string folder() const { return "/proc/" + std::to_string(pid_); }
  /// Throws journal::Error where the program can't be attached to, whatever its threads do.
  void refuse_unfit() const;
  std::vector<pid_t> threads() const;
  std::vector<Mapping> mappings() const;
  /// A line "NAME:\tVALUE" of the status of the process or of one of its threads; "" where it is not there.
  std::string status(const char* name, pid_t thread = 0) const;
  /// The same of a set of signals.
  std::uint64_t signals(const char* name, pid_t thread) const;
  bool read(std::uint64_t from, void* into, std::size_t bytes) const;
  bool write(std::uint64_t to, const void* from, std::size_t bytes) const;

 private:
  pid_t pid_;
};

/// Whether this mapping is of a file with this name, removed or not.
bool is_file(const Mapping& mapping, const std::string& name);

}  // namespace blockyard::record::attach
