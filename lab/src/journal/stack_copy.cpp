#include "journal/stack_copy.hpp"

#include <string>
#include <utility>

#include "journal/system_code.hpp"

namespace blockyard::journal {
namespace {

constexpr std::uint32_t not_yet = no_node;

std::uint32_t& at(std::vector<std::uint32_t>& map, std::uint32_t index) {
  if (map.size() <= index) map.resize(index + std::size_t{1}, not_yet);
  return map[index];
}

/// Gives frames of one journal the names of another's.
class NameCopier {
 public:
  NameCopier(const Stacks& from, Stacks& to, Texts texts) : from_(from), to_(to), texts_(texts) {}

  void copy(std::uint32_t frame, std::uint32_t to_frame) {
    const auto named = from_.names(frame);
    if (named.empty()) return;
    numbered_.clear();
    for (const Function& function : named) {
      numbered_.push_back(function_text(function.name));
      numbered_.push_back(text(function.file, "file-"));
    }
    functions_.clear();
    for (std::size_t i = 0; i < named.size(); ++i) {
      functions_.push_back({numbered_[2 * i], numbered_[2 * i + 1], named[i].line});
    }
    to_.set_names(to_frame, functions_);
  }

 private:
  std::string text(std::uint32_t index, std::string_view kind) const {
    if (texts_ == Texts::keep || index == 0 || is_place_name(from_.text(index))) return from_.text(index);
    return std::string(kind) + std::to_string(index);
  }

  /// What is not the program's remains known as such, so that the same functions speak for stacks.
  std::string function_text(std::uint32_t index) const {
    if (starts_program(from_.text(index))) return from_.text(index);
    return text(index, is_wrapper(from_.text(index)) ? anonymous_wrapper : "function-");
  }

  const Stacks& from_;
  Stacks& to_;
  Texts texts_;
  std::vector<std::string> numbered_;
  std::vector<NamedFunction> functions_;
};

}  // namespace

void copy_tables(const Stacks& from, Stacks& to, Texts texts, const std::string& program) {
  const StackCounts have = to.counts();
  const StackCounts all = from.counts();
  if (have == all) return;
  for (std::uint32_t i = have.modules; i < all.modules; ++i) {
    Module module = from.modules()[i];
    module.unmapped_ns = never;
    if (texts == Texts::number) {
      module.path = (is_of_system(module.path, program) ? "/usr/lib/module-" : "module-") + std::to_string(i);
      module.build_id.clear();
    }
    to.add_module(std::move(module));
  }
  for (std::uint32_t i = have.frames; i < all.frames; ++i) {
    to.intern_frame(from.frames()[i].module, from.frames()[i].address);
  }
  for (std::uint32_t i = have.nodes; i < all.nodes; ++i) {
    to.add_node(from.nodes()[i].parent, from.nodes()[i].frame);
  }
  for (const std::uint32_t module : from.unmappings().subspan(have.unmappings)) {
    to.set_unmapped(module, from.modules()[module].unmapped_ns);
  }
}

void copy_names(const Stacks& from, Stacks& to, Texts texts) {
  to.clear_names();
  NameCopier names(from, to, texts);
  for (std::uint32_t i = 0; i < from.counts().frames; ++i) names.copy(i, i);
}

std::uint32_t StackSubset::module(std::uint32_t index) {
  if (index == no_module || index == end_marker) return index;
  std::uint32_t& copy = at(modules_, index);
  if (copy == not_yet) {
    Module module = from_.modules()[index];
    module.mapped_ns = moved(module.mapped_ns);
    module.unmapped_ns = never;
    copy = to_.add_module(std::move(module));
  }
  return copy;
}

std::uint32_t StackSubset::frame(std::uint32_t index) {
  std::uint32_t& copy = at(frames_, index);
  if (copy == not_yet) copy = to_.intern_frame(module(from_.frames()[index].module), from_.frames()[index].address);
  return copy;
}

std::uint32_t StackSubset::node(std::uint32_t index) {
  path_.clear();
  std::uint32_t known = index;
  while (known != no_node && at(nodes_, known) == not_yet) {
    path_.push_back(known);
    known = from_.nodes()[known].parent;
  }
  std::uint32_t copy = known == no_node ? no_node : nodes_[known];
  for (; !path_.empty(); path_.pop_back()) {
    copy = to_.add_node(copy, frame(from_.nodes()[path_.back()].frame));
    nodes_[path_.back()] = copy;
  }
  return copy;
}

void StackSubset::finish() {
  for (const std::uint32_t module : from_.unmappings()) {
    const std::uint32_t copy = at(modules_, module);
    if (copy != not_yet) to_.set_unmapped(copy, moved(from_.modules()[module].unmapped_ns));
  }
  NameCopier names(from_, to_, Texts::keep);
  for (std::uint32_t i = 0; i < frames_.size(); ++i) {
    if (frames_[i] != not_yet) names.copy(i, frames_[i]);
  }
}

}  // namespace blockyard::journal
