// What call stacks are called: functions, files and modules as text, and which function speaks for a stack.
#pragma once

#include <cstdint>
#include <regex>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "journal/stacks.hpp"

namespace blockyard::sites {

/// The expression, or an Error that says that it is none.
std::regex expression_of(const std::string& text);

/// By node of a trie of stacks the place of the label that speaks for it: the innermost that passes nothing on, of its
/// own frame or of its callers'; its own innermost where there is none. Callers come first. O(labels + nodes).
template <typename Parent, typename Frame, typename First, typename PassesOn>
std::vector<std::uint32_t> choose_speakers(std::size_t nodes, Parent parent, Frame frame, First first,
                                           PassesOn passes_on) {
  constexpr std::uint32_t nobody = journal::no_node;
  std::vector<std::uint32_t> found(nodes, nobody);
  std::vector<std::uint32_t> speakers(nodes);
  for (std::uint32_t i = 0; i < nodes; ++i) {
    for (std::uint32_t at = first(frame(i)); at < first(frame(i) + 1) && found[i] == nobody; ++at) {
      if (!passes_on(at)) found[i] = at;
    }
    if (found[i] == nobody && parent(i) != journal::no_node) found[i] = found[parent(i)];
    speakers[i] = found[i] == nobody ? first(frame(i)) : found[i];
  }
  return speakers;
}

/// The module of markers, which say why a stack could not be walked to its root.
inline constexpr std::string_view incomplete_module = "[incomplete]";

/// One function of a stack. All but the line are indices for Labels::text().
struct Label {
  std::uint32_t function = 0;
  std::uint32_t file = 0;  ///< or the frame's address, of a function without a name whose places are told apart
  std::uint32_t line = 0;  ///< 0 is unknown
  std::uint32_t module = 0;
};

/// The labels of a journal's stacks. Made once, in O(frames + nodes); `stacks` must be complete and outlive it. A
/// function without a name is called by its module and where it begins, such as libgame.so+0x1234, or by the frame's
/// address where that is not known. Const members are thread-safe.
class Labels {
 public:
  /// With `show_wrappers` the innermost function speaks for each stack, whatever it is. Functions that the regular
  /// expression `skip` matches are wrappers, too; empty is none. Throws journal::Error when it is no expression.
  Labels(const journal::Stacks& stacks, bool show_wrappers, const std::string& skip = {},
         bool tell_places_apart = false);

  /// The functions of a frame, innermost first; at least one.
  std::span<const Label> of_frame(std::uint32_t frame) const;
  /// The function that speaks for a stack: the innermost that is no wrapper.
  const Label& speaker(std::uint32_t node) const { return labels_[speaker_place(node)]; }
  /// All labels, frame by frame, and where those of a frame begin (one more frame than there is: the end).
  std::span<const Label> all() const { return labels_; }
  std::uint32_t first_place(std::uint32_t frame) const { return first_[frame]; }
  std::uint32_t speaker_place(std::uint32_t node) const { return speakers_[node]; }
  bool wraps(std::uint32_t text) const { return wrapper_[text]; }
  const std::string& text(std::uint32_t index) const { return texts_[index]; }
  std::uint32_t texts() const { return static_cast<std::uint32_t>(texts_.size()); }
  const journal::Stacks& stacks() const { return stacks_; }

 private:
  std::uint32_t intern(std::string_view text);
  void add_frame(std::uint32_t frame);

  const journal::Stacks& stacks_;
  bool tell_places_apart_;
  std::vector<std::string> texts_;
  std::unordered_map<std::string, std::uint32_t> index_;
  std::vector<bool> wrapper_;            ///< by text
  std::vector<Label> labels_;            ///< of all frames, one after the other
  std::vector<std::uint32_t> first_;     ///< by frame: its first label; one more at the end
  std::vector<std::uint32_t> speakers_;  ///< by node: a label
};

}  // namespace blockyard::sites
