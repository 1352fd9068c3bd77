#include "record/collect/journal_names.hpp"

#include <filesystem>

namespace blockyard::record {

std::string JournalNames::name_image(pid_t pid, bool records_malloc) {
  const unsigned image = ++images_[pid];
  if (!records_malloc) return {};
  if (first_pid_ == 0) first_pid_ = pid;
  return pid == first_pid_ && !first_is_taken_ ? wanted_ : own_path(pid, image);
}

std::string JournalNames::next_path(pid_t pid) const {
  const auto seen = images_.find(pid);
  return own_path(pid, seen == images_.end() ? 1 : seen->second + 1);
}

std::string JournalNames::own_path(pid_t pid, unsigned image) const {
  const std::filesystem::path base(wanted_);
  std::string name = base.stem().string();
  name.append(".").append(std::to_string(pid));
  if (image > 1) name.append(".").append(std::to_string(image));
  return base.parent_path() / (name + base.extension().string());
}

}  // namespace blockyard::record
