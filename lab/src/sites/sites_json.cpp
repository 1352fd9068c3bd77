#include "sites/sites_json.hpp"

#include <algorithm>
#include <regex>
#include <vector>

namespace blockyard::sites {
namespace {

using journal::Json;

std::uint64_t rank(const Totals& totals, Sort sort) {
  constexpr std::uint64_t Totals::*by_sort[] = {
      &Totals::allocations, &Totals::bytes,     &Totals::frame_allocations, &Totals::worst_frame,
      &Totals::peak_bytes,  &Totals::end_bytes, &Totals::freed_same_frame,  &Totals::freed_shared};
  return totals.*by_sort[static_cast<std::size_t>(sort)];
}

void put(Json& json, const Totals& totals) {
  json["allocations"] = totals.allocations;
  json["bytes"] = totals.bytes;
  json["frame_allocations"] = totals.frame_allocations;
  json["frame_bytes"] = totals.frame_bytes;
  json["worst_frame_allocations"] = totals.worst_frame;
  json["frames"] = totals.frames;
  json["peak_blocks"] = totals.peak_blocks;
  json["peak_bytes"] = totals.peak_bytes;
  json["end_blocks"] = totals.end_blocks;
  json["end_bytes"] = totals.end_bytes;
  json["freed"] = totals.freed;
  json["freed_same_frame"] = totals.freed_same_frame;
  json["freed_shared"] = totals.freed_shared;
  json["shared_function"] = totals.shared;
}

void put(Json& json, const Labels& labels, const Label& label, By by) {
  if (by != By::module) {
    json["function"] = labels.text(label.function);
    json["file"] = labels.text(label.file);
    if (by != By::function) json["line"] = label.line;
  }
  json["module"] = labels.text(label.module);
}

Json stack_of(const Labels& labels, std::uint32_t node) {
  Json stack = Json::array();
  for (; node != journal::no_node; node = labels.stacks().nodes()[node].parent) {
    for (const Label& label : labels.of_frame(labels.stacks().nodes()[node].frame)) {
      Json one = Json::object();
      put(one, labels, label, By::line);
      stack.push_back(std::move(one));
    }
  }
  return stack;
}

Json site_json(const Sites& sites, const Site& site, By by) {
  Json json = Json::object();
  if (by == By::tag) {
    json["tag"] = site.has_stack ? sites.header().names[site.label] : std::string();
  } else if (site.has_stack) {
    put(json, *sites.labels, sites.labels->speaker(site.node), by);
    if (by == By::stack) json["stack"] = stack_of(*sites.labels, site.node);
  } else {
    json["function"] = "";  // no stack was recorded
    json["module"] = "";
  }
  put(json, site.totals);
  return json;
}

std::vector<std::string> texts_of(const Sites& sites, const Site& site, By by) {
  if (!site.has_stack) return {};
  if (by == By::tag) return {sites.header().names[site.label]};
  const Label& label = sites.labels->speaker(site.node);
  const auto text = [&](std::uint32_t index) { return sites.labels->text(index); };
  if (by == By::module) return {text(label.module)};
  return {text(label.function), text(label.file), text(label.module)};
}

}  // namespace

Json sites_json(const Sites& sites, By by, const Listing& listing) {
  const std::regex expression = expression_of(listing.match);
  std::vector<const Site*> chosen;
  for (const Site& site : sites.sites) {
    const Totals& totals = site.totals;
    if (totals.allocations == 0 && totals.peak_blocks == 0 && totals.end_blocks == 0) continue;
    const std::vector<std::string> texts = texts_of(sites, site, by);
    const auto fits = [&](const std::string& text) { return std::regex_search(text, expression); };
    if (!listing.match.empty() && std::none_of(texts.begin(), texts.end(), fits)) continue;
    chosen.push_back(&site);
  }
  std::stable_sort(chosen.begin(), chosen.end(), [&](const Site* a, const Site* b) {
    const std::uint64_t first = rank(a->totals, listing.sort);
    const std::uint64_t second = rank(b->totals, listing.sort);
    return first != second ? first > second : a->totals.bytes > b->totals.bytes;
  });
  Json json = {{"program", sites.header().program},
               {"duration_ns", sites.duration_ns},
               {"marked_frames", sites.marked_frames},
               {"frame_count", sites.frame_count},
               {"peak_at_ns", sites.peak_at_ns},
               {"cut_at_end", sites.header().cut_at_end},
               {"has_names", sites.stacks().has_names()},
               {"without_stack", sites.without_stack},
               {"incomplete_stacks", sites.incomplete_stacks},
               {"site_count", chosen.size()}};
  put(json["all"], sites.all);
  json["all"].erase("freed_shared");
  json["all"].erase("shared_function");
  if (listing.limit != 0 && chosen.size() > listing.limit) chosen.resize(listing.limit);
  Json list = Json::array();
  for (const Site* site : chosen) list.push_back(site_json(sites, *site, by));
  json["sites"] = std::move(list);
  json["notes"] = std::vector<std::string>(sites.source->notes().begin(), sites.source->notes().end());
  return json;
}

}  // namespace blockyard::sites
