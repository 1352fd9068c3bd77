#include "journal/stack_copy.hpp"

#include <utility>

namespace blockyard::journal {
namespace {

constexpr std::uint32_t not_yet = no_node;

std::uint32_t& at(std::vector<std::uint32_t>& map, std::uint32_t index) {
  if (map.size() <= index) map.resize(index + std::size_t{1}, not_yet);
  return map[index];
}

void copy_names_of(const Stacks& from, std::uint32_t index, Stacks& to, std::uint32_t copy,
                   std::vector<NamedFunction>& functions) {
  functions.clear();
  for (const Function& function : from.names(index)) {
    functions.push_back({from.text(function.name), from.text(function.file), function.line});
  }
  if (!functions.empty()) to.set_names(copy, functions);
}

}  // namespace

void copy_tables(const Stacks& from, Stacks& to) {
  const StackCounts have = to.counts();
  const StackCounts all = from.counts();
  if (have == all) return;
  for (std::uint32_t i = have.modules; i < all.modules; ++i) {
    Module module = from.modules()[i];
    module.unmapped_ns = never;
    to.add_module(std::move(module));
  }
  for (std::uint32_t i = have.frames; i < all.frames; ++i) {
    to.intern_frame(from.frames()[i].module, from.frames()[i].address);
  }
  for (std::uint32_t i = have.nodes; i < all.nodes; ++i) {
    to.intern_node(from.nodes()[i].parent, from.nodes()[i].frame);
  }
  for (const std::uint32_t module : from.unmappings().subspan(have.unmappings)) {
    to.set_unmapped(module, from.modules()[module].unmapped_ns);
  }
}

void copy_names(const Stacks& from, Stacks& to) {
  to.clear_names();
  std::vector<NamedFunction> functions;
  for (std::uint32_t i = 0; i < from.counts().frames; ++i) copy_names_of(from, i, to, i, functions);
}

std::uint32_t StackSubset::module(std::uint32_t index) {
  if (index == no_module || index == end_marker) return index;
  std::uint32_t& copy = at(modules_, index);
  if (copy == not_yet) {
    Module module = from_.modules()[index];
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
    copy = to_.intern_node(copy, frame(from_.nodes()[path_.back()].frame));
    nodes_[path_.back()] = copy;
  }
  return copy;
}

void StackSubset::finish() {
  for (const std::uint32_t module : from_.unmappings()) {
    const std::uint32_t copy = at(modules_, module);
    if (copy != not_yet) to_.set_unmapped(copy, from_.modules()[module].unmapped_ns);
  }
  std::vector<NamedFunction> functions;
  for (std::uint32_t i = 0; i < frames_.size(); ++i) {
    if (frames_[i] != not_yet) copy_names_of(from_, i, to_, frames_[i], functions);
  }
}

}  // namespace blockyard::journal
