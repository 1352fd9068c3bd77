// Which file each recorded process writes.
#pragma once

#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include <sys/types.h>

namespace blockyard::record {

/// A file that got another name: from, to.
using Moved = std::pair<std::string, std::string>;

/// The first process writes the file that the user named: its last image that records anything, because it is often a
/// script or a launcher that executes the program. All others add their process id to the name, and a later image its
/// number. Where there are more than a few, they lie in a folder.
class JournalNames {
 public:
  /// So many lie beside the file that the user named.
  static constexpr unsigned most_beside = 8;

  /// A file that is there already is replaced only where `overwrite` says so: otherwise a journal keeps its name, and
  /// what was to get that one gets another.
  JournalNames(std::string wanted, bool overwrite) : wanted_(std::move(wanted)), overwrite_(overwrite) {}

  /// The path for a new image of a process. Call it once for each image. `is_first`: of the first process that records
  /// malloc. An engine's own journals need none.
  std::string name_image(pid_t pid, bool is_first);
  /// The path that the process's next image will get.
  std::string next_path(pid_t pid) const;

  /// An image of the first process has ended, and wrote these journals; none where it recorded nothing. Returns the
  /// journals of an earlier image that take the name back.
  std::vector<Moved> end_first(const std::vector<std::string>& journals);
  /// Another image of the first process begins: the journals of the last one get a name of their own.
  std::vector<Moved> begin_first();
  /// Those that lie beside the first, and have ended, go to the folder, if there is one by now.
  std::vector<Moved> gather(const std::vector<std::string>& ended);

 private:
  std::string own_path(pid_t pid, unsigned image, unsigned number) const;
  std::string folder() const;

  std::string wanted_;
  bool overwrite_;
  bool first_is_kept_ = false;                  ///< by an image of the first process that could not get another
  bool has_no_folder_ = false;                  ///< it could not be made
  std::unordered_map<pid_t, unsigned> images_;  ///< seen of each process id
  unsigned others_ = 0;                         ///< paths that were given beside the first
  std::string first_own_;  ///< what the last image of the first process is called where another took its name
  std::vector<std::string> first_journals_;  ///< of the last image of the first process that wrote any
  std::vector<Moved> away_;                  ///< what begin_first() moved
};

}  // namespace blockyard::record
