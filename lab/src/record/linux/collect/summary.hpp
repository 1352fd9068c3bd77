// What the collector prints at the end: one line of JSON about each process image and its journals.
#pragma once

#include <string>

#include <sys/types.h>

#include "journal/json_text.hpp"
#include "record/linux/collect/journal_names.hpp"
#include "record/linux/collect/session.hpp"

namespace blockyard::record {

class Summary {
 public:
  /// An image that has ended, all of whose journals are written. `process` is the same for all images of one.
  void add_ended(pid_t pid, std::uint64_t process, Session& session, double ns_per_stamp);
  /// A program that was to begin in this process, and never introduced itself.
  void add_unseen(pid_t pid, const std::string& program);
  /// Journals have other names now.
  void rename(const std::vector<Moved>& moved);
  /// An image that is still recorded. `silent`: a forked child that has recorded nothing so far.
  void add_running(pid_t pid, const std::string& program, const std::string& path, bool silent);

  std::string text(StampClock clock, bool fences) const;

 private:
  journal::Json images_ = journal::Json::array();
  journal::Json unseen_ = journal::Json::array();
};

}  // namespace blockyard::record
