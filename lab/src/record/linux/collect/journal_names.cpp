#include "record/linux/collect/journal_names.hpp"

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <system_error>

#include <fcntl.h>
#include <unistd.h>

namespace blockyard::record {
namespace {

namespace fs = std::filesystem;

// Some file systems know no renaming that spares what is there: a second link does.
bool move(const char* from, const char* to, bool overwrite) {
  if (overwrite) return std::rename(from, to) == 0;
  if (renameat2(AT_FDCWD, from, AT_FDCWD, to, RENAME_NOREPLACE) == 0) return true;
  return errno == EINVAL && link(from, to) == 0 && unlink(from) == 0;
}

// Renames what can be renamed.
std::vector<Moved> move_all(const std::vector<Moved>& wanted, bool overwrite) {
  std::vector<Moved> done;
  for (const Moved& one : wanted) {
    if (move(one.first.c_str(), one.second.c_str(), overwrite)) done.push_back(one);
  }
  return done;
}

// Where in `path` the name of the n-th window differs from that of the first: "-2.byj" of game-2.byj.
std::string behind_stem(const std::string& path, const std::string& stem) {
  const std::string name = fs::path(path).filename().string();
  return name.starts_with(stem) ? name.substr(stem.size()) : std::string();
}

}  // namespace

std::string JournalNames::name_image(pid_t pid, bool is_first) {
  const unsigned image = ++images_[pid];
  if (!is_first || first_is_kept_) {
    if (++others_ > most_beside) {
      std::error_code failed;
      fs::create_directory(folder(), failed);
      has_no_folder_ = static_cast<bool>(failed);
    }
    return own_path(pid, image, others_);
  }
  first_own_ = fs::path(wanted_).stem().string() + "." + std::to_string(pid);
  if (image > 1) first_own_.append(".").append(std::to_string(image));
  return wanted_;
}

std::string JournalNames::next_path(pid_t pid) const {
  const auto seen = images_.find(pid);
  return own_path(pid, seen == images_.end() ? 1 : seen->second + 1, others_ + 1);
}

std::string JournalNames::folder() const {
  const fs::path base(wanted_);
  return base.parent_path() / (base.stem().string() + ".processes");
}

std::string JournalNames::own_path(pid_t pid, unsigned image, unsigned number) const {
  const fs::path base(wanted_);
  std::string name = base.stem().string();
  name.append(".").append(std::to_string(pid));
  if (image > 1) name.append(".").append(std::to_string(image));
  name += base.extension().string();
  return (number > most_beside && !has_no_folder_ ? fs::path(folder()) : base.parent_path()) / name;
}

std::vector<Moved> JournalNames::end_first(const std::vector<std::string>& journals) {
  if (first_is_kept_) return {};
  if (!journals.empty()) {
    first_journals_ = journals;
    away_.clear();
    return {};
  }
  std::vector<Moved> back;
  for (const Moved& one : away_) back.emplace_back(one.second, one.first);
  back = move_all(back, overwrite_);
  if (!back.empty()) {
    first_journals_.clear();
    for (const Moved& one : back) first_journals_.push_back(one.second);
  }
  away_.clear();
  return back;
}

std::vector<Moved> JournalNames::begin_first() {
  const fs::path base(wanted_);
  std::vector<Moved> away;
  for (const std::string& journal : first_journals_) {
    const std::string rest = behind_stem(journal, base.stem().string());
    if (!rest.empty()) away.emplace_back(journal, base.parent_path() / (first_own_ + rest));
  }
  first_journals_.clear();
  away_ = move_all(away, overwrite_);
  if (away_.size() == away.size()) return away_;
  // A file of the user's has the name: what is here keeps its own.
  first_is_kept_ = true;
  for (Moved& one : away_) std::swap(one.first, one.second);
  move_all(away_, overwrite_);
  away_.clear();
  return away_;
}

std::vector<Moved> JournalNames::gather(const std::vector<std::string>& ended) {
  std::vector<Moved> all;
  std::error_code failed;
  if (others_ <= most_beside || !fs::is_directory(folder(), failed)) return all;
  const fs::path base(wanted_);
  for (const std::string& journal : ended) {
    const fs::path path(journal);
    if (path.parent_path() != base.parent_path()) continue;
    // Not the first process's own windows: game.byj, game-2.byj.
    if (!behind_stem(journal, base.stem().string() + ".").empty() && path != base)
      all.emplace_back(journal, fs::path(folder()) / path.filename());
  }
  return move_all(all, overwrite_);
}

}  // namespace blockyard::record
