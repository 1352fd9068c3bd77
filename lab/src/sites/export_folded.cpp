#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "sites/export.hpp"

namespace blockyard::sites {
namespace {

/// Semicolons part functions, and lines end lines.
std::string folded_name(const std::string& text) {
  std::string name = utf8(text);
  for (char& c : name) {
    if (c == ';') c = ':';
    if (c == '\n' || c == '\r') c = ' ';
  }
  return name;
}

std::string folded(const Sites& sites, const Site& site) {
  if (!site.has_stack) return "[no call stack]";
  std::vector<std::string> functions;  // innermost first
  for (std::uint32_t node = site.node; node != journal::no_node; node = sites.stacks().nodes()[node].parent) {
    for (const Label& label : sites.labels->of_frame(sites.stacks().nodes()[node].frame)) {
      functions.push_back(folded_name(sites.labels->text(label.function)));
    }
  }
  std::string line;
  for (auto function = functions.rbegin(); function != functions.rend(); ++function) {
    if (!line.empty()) line += ';';
    line += *function;
  }
  return line;
}

}  // namespace

void write_folded(const Sites& sites, Weight weight, journal::ByteSink& out) {
  std::map<std::string, std::uint64_t> lines;
  for (const Site& site : sites.sites) {
    if (const std::uint64_t value = weight_of(site.totals, weight); value != 0) lines[folded(sites, site)] += value;
  }
  for (const auto& [line, value] : lines) out.write(line + " " + std::to_string(value) + "\n");
}

}  // namespace blockyard::sites
