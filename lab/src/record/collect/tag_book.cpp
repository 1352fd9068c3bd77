#include "record/collect/tag_book.hpp"

#include <algorithm>
#include <cstring>
#include <string_view>
#include <utility>

#include "blockyard/forbid.h"
#include "record/channel.hpp"

namespace blockyard::record {
namespace {

// Every part of a name between two slashes is a level; empty ones are none.
std::string extended(std::string path, std::string_view name) {
  while (!name.empty()) {
    const std::size_t end = std::min(name.find('/'), name.size());
    if (end > 0) {
      if (!path.empty()) path += '/';
      path += name.substr(0, end);
    }
    name.remove_prefix(std::min(end + 1, name.size()));
  }
  return path;
}

}  // namespace

std::uint32_t TagTexts::intern(const std::string& text) {
  const auto [place, is_new] = indices_.try_emplace(text, static_cast<std::uint32_t>(texts_.size()));
  if (is_new) texts_.push_back(text);
  return place->second;
}

TagBook::TagBook(std::shared_ptr<TagTexts> texts) : texts_(std::move(texts)) {
  if (texts_ == nullptr) texts_ = std::make_shared<TagTexts>();
}

std::uint32_t TagBook::apply(const std::uint64_t* record) {
  TagFacts facts{};
  const std::size_t bytes = payload_of(record[0]);
  if (bytes < sizeof facts) return 0;
  std::memcpy(&facts, record + 2, sizeof facts);
  if (facts.number == 0 || facts.number > most_tag_paths) return 0;
  const std::string_view name(reinterpret_cast<const char*>(record + 2) + sizeof facts, bytes - sizeof facts);
  const std::uint32_t parent = facts.parent < indices_.size() ? indices_[facts.parent] : 0;
  if (facts.number >= indices_.size()) indices_.resize(facts.number + 1, 0);
  indices_[facts.number] = texts_->intern(extended(texts_->text(parent), name));
  return indices_[facts.number];
}

bool TagBook::forbids(std::uint32_t index) const {
  const std::string_view path = texts_->text(index);
  const std::string_view above = path.substr(0, std::min(path.rfind('/'), path.size()));
  return above == BY_FORBIDDEN || above.ends_with("/" BY_FORBIDDEN);
}

std::uint32_t TagBook::index(std::uint64_t site_word) const {
  const auto number = static_cast<std::uint32_t>(site_word >> 32);
  return number < indices_.size() ? indices_[number] : 0;
}

}  // namespace blockyard::record
