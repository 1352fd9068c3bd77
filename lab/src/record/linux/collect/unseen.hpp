// What the recorder could not see of a program: an allocator of its own, whose calls pass the hooks by.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include <sys/types.h>

namespace blockyard::record {

/// Follows one process image.
class Unseen {
 public:
  /// File names: `hooked` is that of the library whose malloc is recorded, `own` that of what has an allocator which
  /// stands in front of it, empty where nothing does.
  Unseen(std::string program, std::string hooked, std::string own, bool own_is_hooked);

  /// Looks at what the process has mapped: its files, and how much private memory is in use. Cheap enough for once a
  /// second.
  void look(pid_t pid);

  /// Sentences without their stop, each with what to do. `allocations` were recorded, and at most `most_live_bytes`
  /// were in their blocks at a time. `is_fresh`: the image is no forked child, and was recorded from its start to its
  /// end. Reads the symbols of each file once for all images.
  std::vector<std::string> sentences(std::uint64_t allocations, std::uint64_t most_live_bytes, bool is_fresh) const;

 private:
  std::string program_;
  std::string hooked_;
  std::string own_;
  bool own_is_hooked_;
  std::set<std::string> files_;  ///< paths of what is mapped as code
  std::uint64_t most_private_bytes_ = 0;
};

/// The allocator that an ELF file carries, by its symbols, or, where it has none left, by its messages; empty where
/// none is known. What is linked as a library of its own counts, too.
std::string carried_allocator(const std::string& path, bool look_for_messages);

}  // namespace blockyard::record
