#include "journal/stacks.hpp"

#include <array>
#include <cstdio>

namespace blockyard::journal {
namespace {

constexpr std::size_t first_slots = 16;  // most journals that have no stacks still have a Stacks

// Not 0, which FlatMap reserves: a root's parent wraps to 0, and the sum adds 1.
std::uint64_t node_key(std::uint32_t parent, std::uint32_t frame) {
  return (std::uint64_t{parent + 1} << 32 | frame) + 1;
}

[[noreturn]] void fail(const std::string& what) { throw Error(what); }

std::string number(std::uint32_t index) { return std::to_string(index); }

}  // namespace

std::string_view stack_end_text(std::uint64_t reason) {
  constexpr std::array<std::string_view, 6> texts{"deeper than recorded",       "no unwind rules",
                                                  "outside the thread's stack", "no valid return address",
                                                  "unreadable memory",          "unknown"};
  return texts[reason < texts.size() ? reason : texts.size() - 1];
}

std::string place_name(std::uint64_t address) {
  char text[20];
  std::snprintf(text, sizeof text, "+0x%llx", static_cast<unsigned long long>(address));
  return text;
}

Stacks::Stacks() : node_index_(first_slots) { intern_text({}); }

std::uint32_t Stacks::add_module(Module module) {
  if (module.end < module.begin) fail("module " + number(counts().modules) + " ends before it begins");
  if (module.build_id.find_first_not_of("0123456789abcdef") != std::string::npos) {
    fail("module " + number(counts().modules) + " has a build-id that is no hexadecimal number");
  }
  if (modules_.size() >= end_marker) fail("the journal has more modules than 32 bits can number");
  if (module.path.size() > most_text_bytes) module.path.resize(most_text_bytes);
  const auto index = static_cast<std::uint32_t>(modules_.size());
  const std::uint64_t unmapped_ns = module.unmapped_ns;
  module.unmapped_ns = never;
  modules_.push_back(std::move(module));
  if (unmapped_ns != never) set_unmapped(index, unmapped_ns);
  return index;
}

void Stacks::set_unmapped(std::uint32_t module, std::uint64_t unmapped_ns) {
  if (module >= modules_.size()) fail("module " + number(module) + " is unmapped, but does not exist");
  if (modules_[module].unmapped_ns != never) fail("module " + number(module) + " is unmapped twice");
  if (unmapped_ns == never || unmapped_ns < modules_[module].mapped_ns) {
    fail("module " + number(module) + " is unmapped before it is mapped");
  }
  modules_[module].unmapped_ns = unmapped_ns;
  unmappings_.push_back(module);
}

std::uint32_t Stacks::intern_frame(std::uint32_t module, std::uint64_t address) {
  if (module >= modules_.size() && module != no_module && module != end_marker) {
    fail("stack frame " + number(counts().frames) + " names module " + number(module) + ", which does not exist");
  }
  const auto [place, is_new] = frame_index_.try_emplace({module, address}, static_cast<std::uint32_t>(frames_.size()));
  if (is_new) {
    if (frames_.size() >= no_node) fail("the journal has more stack frames than 32 bits can number");
    frames_.push_back({module, address});
  }
  return place->second;
}

std::uint32_t Stacks::intern_node(std::uint32_t parent, std::uint32_t frame) {
  for (; indexed_nodes_ != nodes_.size(); ++indexed_nodes_) {
    node_index_.insert(node_key(nodes_[indexed_nodes_].parent, nodes_[indexed_nodes_].frame), indexed_nodes_);
  }
  const std::uint64_t key = node_key(parent, frame);
  if (const std::uint32_t* known = node_index_.find(key)) return *known;
  const std::uint32_t index = add_node(parent, frame);
  node_index_.insert(key, index);
  ++indexed_nodes_;
  return index;
}

std::uint32_t Stacks::add_node(std::uint32_t parent, std::uint32_t frame) {
  const auto refuse = [this](const std::string& why) { fail("call stack " + number(counts().nodes) + why); };
  if (parent >= nodes_.size() && parent != no_node) {
    refuse(" continues call stack " + number(parent) + ", which does not exist");
  }
  if (frame >= frames_.size()) refuse(" names stack frame " + number(frame) + ", which does not exist");
  if (frames_[frame].module == end_marker && parent != no_node) {
    refuse(" has the marker of an incomplete stack in its middle");
  }
  if (nodes_.size() >= no_node) fail("the journal has more call stacks than 32 bits can number");
  const auto index = static_cast<std::uint32_t>(nodes_.size());
  nodes_.push_back({parent, frame});
  return index;
}

std::uint32_t Stacks::intern_text(std::string_view text) {
  text = text.substr(0, most_text_bytes);
  if (const auto known = text_index_.find(text); known != text_index_.end()) return known->second;
  const auto index = static_cast<std::uint32_t>(texts_.size());
  text_index_.emplace(texts_.emplace_back(text), index);
  return index;
}

void Stacks::set_names(std::uint32_t frame, std::span<const NamedFunction> functions) {
  if (frame >= frames_.size()) fail("stack frame " + number(frame) + " is named, but does not exist");
  if (names_.size() <= frame) names_.resize(frame + 1);
  if (is_named(frame)) --named_frames_;
  names_[frame] = {static_cast<std::uint32_t>(functions_.size()), static_cast<std::uint32_t>(functions.size())};
  for (const NamedFunction& function : functions) {
    functions_.push_back({intern_text(function.name), intern_text(function.file), function.line});
  }
  if (is_named(frame)) ++named_frames_;
}

void Stacks::clear_names() {
  names_.clear();
  functions_.clear();
  text_index_.clear();
  texts_.clear();
  named_frames_ = 0;
  intern_text({});
}

StackCounts Stacks::counts() const {
  return {static_cast<std::uint32_t>(modules_.size()), static_cast<std::uint32_t>(frames_.size()),
          static_cast<std::uint32_t>(nodes_.size()), static_cast<std::uint32_t>(unmappings_.size())};
}

std::span<const Function> Stacks::names(std::uint32_t frame) const {
  if (frame >= names_.size()) return {};
  return std::span(functions_).subspan(names_[frame].first, names_[frame].count);
}

bool Stacks::is_named(std::uint32_t frame) const {
  const auto functions = names(frame);
  return !functions.empty() && (functions.front().line != 0 || !is_place_name(texts_[functions.front().name]));
}

void Stacks::check() const {
  for (std::uint32_t i = 0; i < modules_.size(); ++i) {
    const Module& module = modules_[i];
    if (module.end < module.begin) fail("module " + number(i) + " ends before it begins");
    if (module.unmapped_ns < module.mapped_ns) fail("module " + number(i) + " is unmapped before it is mapped");
  }
  for (std::uint32_t i = 0; i < frames_.size(); ++i) {
    const std::uint32_t module = frames_[i].module;
    if (module >= modules_.size() && module != no_module && module != end_marker) {
      fail("stack frame " + number(i) + " names module " + number(module) + ", which does not exist");
    }
    const auto known = frame_index_.find(frames_[i]);
    if (known == frame_index_.end() || known->second != i) fail("stack frame " + number(i) + " is there twice");
  }
  FlatMap<std::uint32_t> seen;
  for (std::uint32_t i = 0; i < nodes_.size(); ++i) {
    const Node& node = nodes_[i];
    if (node.parent != no_node && node.parent >= i) {
      fail("call stack " + number(i) + " continues call stack " + number(node.parent) + ", which does not precede it");
    }
    if (node.frame >= frames_.size()) {
      fail("call stack " + number(i) + " names stack frame " + number(node.frame) + ", which does not exist");
    }
    if (frames_[node.frame].module == end_marker && node.parent != no_node) {
      fail("call stack " + number(i) + " has the marker of an incomplete stack in its middle");
    }
    if (!seen.insert(node_key(node.parent, node.frame), i)) fail("call stack " + number(i) + " is there twice");
  }
  if (names_.size() > frames_.size()) fail("a stack frame is named that does not exist");
  std::uint32_t named = 0;
  for (std::uint32_t i = 0; i < names_.size(); ++i) {
    for (const Function& function : names(i)) {
      if (function.name >= texts_.size() || function.file >= texts_.size()) {
        fail("a function of stack frame " + number(i) + " has a text that does not exist");
      }
    }
    if (is_named(i)) ++named;
  }
  if (named != named_frames_) fail("the number of stack frames with names is wrong");
}

}  // namespace blockyard::journal
