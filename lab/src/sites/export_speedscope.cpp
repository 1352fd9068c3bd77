#include <algorithm>
#include <array>
#include <map>
#include <tuple>
#include <utility>
#include <vector>

#include "journal/json_text.hpp"
#include "sites/export.hpp"

namespace blockyard::sites {
namespace {

using journal::Json;

class Frames {
 public:
  explicit Frames(const Sites& sites) : sites_(sites) {}

  /// A stack's frames, the root first.
  Json stack(const Site& site) {
    std::vector<std::size_t> indices;
    if (!site.has_stack) indices.push_back(index({}));
    for (std::uint32_t node = site.node; site.has_stack && node != journal::no_node;
         node = sites_.stacks().nodes()[node].parent) {
      for (const Label& label : sites_.labels->of_frame(sites_.stacks().nodes()[node].frame)) {
        indices.push_back(index(label));
      }
    }
    std::reverse(indices.begin(), indices.end());
    return indices;
  }
  Json take() { return std::move(frames_); }

 private:
  std::size_t index(const Label& label) {
    const auto [place, is_new] = known_.try_emplace({label.function, label.file, label.line}, frames_.size());
    if (is_new) {
      Json frame = {{"name", label.function == 0 ? "[no call stack]" : sites_.labels->text(label.function)}};
      if (label.file != 0) frame["file"] = sites_.labels->text(label.file);
      if (label.line != 0) frame["line"] = label.line;
      frames_.push_back(std::move(frame));
    }
    return place->second;
  }

  const Sites& sites_;
  Json frames_ = Json::array();
  std::map<std::tuple<std::uint32_t, std::uint32_t, std::uint32_t>, std::size_t> known_;
};

}  // namespace

void write_speedscope(const Sites& sites, journal::ByteSink& out) {
  struct Kind {
    Weight weight;
    const char* name;
    const char* unit;
  };
  constexpr std::array<Kind, 4> kinds{{{Weight::allocations, "allocations", "none"},
                                       {Weight::bytes, "bytes allocated", "bytes"},
                                       {Weight::end_blocks, "blocks alive at the end", "none"},
                                       {Weight::end_bytes, "bytes alive at the end", "bytes"}}};
  Frames frames(sites);
  Json profiles = Json::array();
  for (const Kind& kind : kinds) {
    Json samples = Json::array();
    Json weights = Json::array();
    std::uint64_t sum = 0;
    for (const Site& site : sites.sites) {
      const std::uint64_t weight = weight_of(site.totals, kind.weight);
      if (weight == 0) continue;
      samples.push_back(frames.stack(site));
      weights.push_back(weight);
      sum += weight;
    }
    profiles.push_back({{"type", "sampled"},
                        {"name", kind.name},
                        {"unit", kind.unit},
                        {"startValue", 0},
                        {"endValue", sum},
                        {"samples", std::move(samples)},
                        {"weights", std::move(weights)}});
  }
  const Json document = {{"$schema", "https://www.speedscope.app/file-format-schema.json"},
                         {"name", sites.header().program},
                         {"exporter", "blockyard"},
                         {"activeProfileIndex", 0},
                         {"shared", {{"frames", frames.take()}}},
                         {"profiles", std::move(profiles)}};
  out.write(journal::json_text(document, -1));
}

}  // namespace blockyard::sites
