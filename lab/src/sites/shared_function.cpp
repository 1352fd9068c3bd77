#include "sites/shared_function.hpp"

#include <algorithm>

namespace blockyard::sites {
namespace {

constexpr std::size_t known_pairs = 1U << 16;

}  // namespace

SharedFunction::SharedFunction(const Labels& labels) : labels_(labels), known_(known_pairs) {
  const auto nodes = labels.stacks().nodes();
  depth_.resize(nodes.size());
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    depth_[i] = nodes[i].parent == journal::no_node ? 0 : depth_[nodes[i].parent] + 1;
  }
}

SharedFunction::Place SharedFunction::where(std::uint32_t allocation, std::uint32_t free) {
  constexpr std::uint64_t mix = 0x9E3779B97F4A7C15U;
  const std::uint64_t key = std::uint64_t{allocation} << 32 | free;
  Known& known = known_[(key * mix) >> 48];
  if (known.allocation != allocation || known.free != free) known = {allocation, free, find(allocation, free)};
  return known.place;
}

SharedFunction::Place SharedFunction::find(std::uint32_t allocation, std::uint32_t free) const {
  const auto nodes = labels_.stacks().nodes();
  std::uint32_t a = allocation;
  std::uint32_t b = free;
  std::uint32_t below_a = journal::no_node;
  std::uint32_t below_b = journal::no_node;
  const auto up = [&](std::uint32_t& node, std::uint32_t& below) {
    below = node;
    node = nodes[node].parent;
  };
  while (a != b) {
    const bool a_is_deeper = b == journal::no_node || (a != journal::no_node && depth_[a] >= depth_[b]);
    const bool b_is_deeper = a == journal::no_node || (b != journal::no_node && depth_[b] >= depth_[a]);
    if (a_is_deeper) up(a, below_a);
    if (b_is_deeper) up(b, below_b);
  }
  // Two addresses below the shared callers: in one function, or in functions inlined into it, outermost first.
  if (below_a != journal::no_node && below_b != journal::no_node) {
    const auto in_a = labels_.of_frame(nodes[below_a].frame);
    const auto in_b = labels_.of_frame(nodes[below_b].frame);
    std::uint32_t shared = none;
    for (std::size_t i = 1; i <= std::min(in_a.size(), in_b.size()); ++i) {
      const Label& one = in_a[in_a.size() - i];
      const Label& other = in_b[in_b.size() - i];
      if (one.function != other.function || one.module != other.module) break;
      if (!labels_.wraps(one.function)) shared = one.function;
    }
    if (shared != none) return {shared, a};
  }
  if (a == journal::no_node) return {};
  if (labels_.stacks().frames()[nodes[a].frame].module == journal::end_marker) return {};
  return {labels_.speaker(a).function, nodes[a].parent};
}

}  // namespace blockyard::sites
