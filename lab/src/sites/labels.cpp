#include "sites/labels.hpp"

#include "journal/system_code.hpp"

namespace blockyard::sites {
namespace {

std::string_view file_name(std::string_view path) { return path.substr(path.rfind('/') + 1); }

}  // namespace

std::regex expression_of(const std::string& text) {
  try {
    return std::regex(text, std::regex::ECMAScript | std::regex::optimize);
  } catch (const std::regex_error&) {
    throw journal::Error("'" + text + "' is no regular expression");
  }
}

Labels::Labels(const journal::Stacks& stacks, bool show_wrappers, const std::string& skip, bool tell_places_apart)
    : stacks_(stacks), tell_places_apart_(tell_places_apart) {
  intern({});
  for (std::uint32_t frame = 0; frame < stacks.frames().size(); ++frame) add_frame(frame);
  first_.push_back(static_cast<std::uint32_t>(labels_.size()));
  if (!skip.empty()) {
    const std::regex expression = expression_of(skip);
    for (std::size_t i = 0; i < texts_.size(); ++i) {
      if (std::regex_search(texts_[i], expression)) wrapper_[i] = true;
    }
  }
  const auto nodes = stacks.nodes();
  const std::uint32_t incomplete = intern(incomplete_module);
  speakers_ = choose_speakers(
      nodes.size(), [&](std::uint32_t node) { return nodes[node].parent; },
      [&](std::uint32_t node) { return nodes[node].frame; }, [&](std::uint32_t frame) { return first_[frame]; },
      [&](std::uint32_t at) {
        return labels_[at].module == incomplete || (!show_wrappers && wrapper_[labels_[at].function]);
      });
}

std::span<const Label> Labels::of_frame(std::uint32_t frame) const {
  return std::span(labels_).subspan(first_[frame], first_[frame + 1] - first_[frame]);
}

std::uint32_t Labels::intern(std::string_view text) {
  const auto [place, is_new] = index_.try_emplace(std::string(text), static_cast<std::uint32_t>(texts_.size()));
  if (is_new) {
    texts_.emplace_back(text);
    wrapper_.push_back(journal::is_wrapper(text));
  }
  return place->second;
}

void Labels::add_frame(std::uint32_t frame) {
  first_.push_back(static_cast<std::uint32_t>(labels_.size()));
  const journal::Frame& where = stacks_.frames()[frame];
  if (where.module == journal::end_marker) {
    labels_.push_back({intern("[stack incomplete: " + std::string(journal::stack_end_text(where.address)) + "]"), 0, 0,
                       intern(incomplete_module)});
    return;
  }
  const bool generated = where.module == journal::no_module;
  const std::string module(generated ? "[generated code]" : file_name(stacks_.modules()[where.module].path));
  const std::uint32_t module_text = intern(module);
  const std::string place = module + journal::place_name(where.address);
  for (const journal::Function& function : stacks_.names(frame)) {
    std::string name = stacks_.text(function.name);
    const bool is_start = journal::is_place_name(name);
    if (is_start) name.insert(0, module);
    const std::uint32_t file =
        intern(is_start && tell_places_apart_ && function.line == 0 ? place : stacks_.text(function.file));
    labels_.push_back({intern(name.empty() ? place : name), file, function.line, module_text});
  }
  if (labels_.size() == first_.back()) {
    labels_.push_back({intern(generated ? journal::place_name(where.address).substr(1) : place), 0, 0, module_text});
  }
}

}  // namespace blockyard::sites
