#include "record/collect/journal_names.hpp"

#include <filesystem>
#include <system_error>

namespace blockyard::record {
namespace {

namespace fs = std::filesystem;

// Renames what can be renamed.
std::vector<Moved> move_all(const std::vector<Moved>& wanted) {
  std::vector<Moved> done;
  for (const Moved& one : wanted) {
    std::error_code failed;
    fs::rename(one.first, one.second, failed);
    if (!failed) done.push_back(one);
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
  if (!is_first) return own_path(pid, image);
  first_own_ = fs::path(wanted_).stem().string() + "." + std::to_string(pid);
  if (image > 1) first_own_.append(".").append(std::to_string(image));
  return wanted_;
}

std::string JournalNames::next_path(pid_t pid) {
  const auto seen = images_.find(pid);
  return own_path(pid, seen == images_.end() ? 1 : seen->second + 1);
}

std::string JournalNames::folder() const {
  const fs::path base(wanted_);
  return base.parent_path() / (base.stem().string() + ".processes");
}

std::string JournalNames::own_path(pid_t pid, unsigned image) {
  const fs::path base(wanted_);
  std::string name = base.stem().string();
  name.append(".").append(std::to_string(pid));
  if (image > 1) name.append(".").append(std::to_string(image));
  name += base.extension().string();
  fs::path in = base.parent_path();
  if (++others_ > most_beside) {
    std::error_code failed;
    fs::create_directory(folder(), failed);
    if (!failed) in = folder();
  }
  return in / name;
}

std::vector<Moved> JournalNames::end_first(const std::vector<std::string>& journals) {
  if (!journals.empty()) {
    first_journals_ = journals;
    away_.clear();
    return {};
  }
  std::vector<Moved> back;
  for (const Moved& one : away_) back.emplace_back(one.second, one.first);
  back = move_all(back);
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
  away_ = move_all(away);
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
  return move_all(all);
}

}  // namespace blockyard::record
