// The tags of a recording, as the threads of its processes report them.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

namespace blockyard::record {

/// The texts of all paths that a recording has met, by index; 0 is no tag. All its process images share them, because a
/// forked child inherits blocks with the tags of its parent.
class TagTexts {
 public:
  std::uint32_t intern(const std::string& text);
  const std::string& text(std::uint32_t index) const { return texts_[index]; }

 private:
  std::vector<std::string> texts_{std::string()};
  std::unordered_map<std::string, std::uint32_t> indices_{{std::string(), 0}};
};

/// Turns the numbers that one process image gives paths into indices of TagTexts. Not thread-safe.
class TagBook {
 public:
  explicit TagBook(std::shared_ptr<TagTexts> texts);

  /// A tag_path record. Returns the index of its path; 0 where it is none.
  std::uint32_t apply(const std::uint64_t* record);
  /// Whether the path ends with what must not allocate (blockyard/forbid.h).
  bool forbids(std::uint32_t index) const;
  /// The index of an event's site word; 0 when it has no tag.
  std::uint32_t index(std::uint64_t site_word) const;
  const std::shared_ptr<TagTexts>& shared_texts() const { return texts_; }

 private:
  std::shared_ptr<TagTexts> texts_;
  std::vector<std::uint32_t> indices_;  ///< by the image's number
};

}  // namespace blockyard::record
