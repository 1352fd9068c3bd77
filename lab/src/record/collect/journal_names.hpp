// Which file each recorded process writes.
#pragma once

#include <string>
#include <unordered_map>
#include <utility>

#include <sys/types.h>

namespace blockyard::record {

/// The first process writes the file that the user named: its first image that records anything, because it is often a
/// script that executes the program. All others add their process id to the name, and a later image its number.
class JournalNames {
 public:
  explicit JournalNames(std::string wanted) : wanted_(std::move(wanted)) {}

  /// The path for a new image of the process. Call it once for each image. `records_malloc` is false for a program that
  /// only opens journals of its own, which gets no path.
  std::string name_image(pid_t pid, bool records_malloc);
  /// The path that the process's next image will get.
  std::string next_path(pid_t pid) const;
  /// An image of the process has ended and has written a journal.
  void use(pid_t pid) { first_is_taken_ |= pid == first_pid_; }

 private:
  std::string own_path(pid_t pid, unsigned image) const;

  std::string wanted_;
  std::unordered_map<pid_t, unsigned> images_;  ///< seen of each process
  pid_t first_pid_ = 0;
  bool first_is_taken_ = false;
};

}  // namespace blockyard::record
