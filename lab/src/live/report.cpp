#include "live/report.hpp"

#include <algorithm>
#include <limits>

namespace blockyard::live {
namespace {

using journal::Json;

constexpr std::size_t shown_stacks = 20;
/// A site only grows when it rose so often since it last fell, and lately: what is loaded once stays, and is no leak.
constexpr std::uint32_t fewest_rises = 3;
constexpr std::uint64_t lately_ns = 30'000'000'000;

Json json_of(const Held& held) { return {{"blocks", held.blocks}, {"bytes", held.bytes}}; }
Json json_of(const Calls& calls) {
  return {{"allocations", calls.allocations}, {"bytes", calls.bytes}, {"frees", calls.frees}};
}

}  // namespace

std::uint32_t Report::find_site(const std::string& function, const std::string& module) {
  const auto [place, is_new] = index_.try_emplace(function + '\n' + module, static_cast<std::uint32_t>(sites_.size()));
  if (is_new) {
    sites_.push_back({function, module, {}, {}});
    sites_.back().growth.begin_ns = counts_.time_ns();
  }
  return place->second;
}

void Report::label() {
  const journal::Stacks& stacks = source_.stacks();
  if (!names_came_ && labelled_ == stacks.counts()) return;
  labelled_ = stacks.counts();
  names_came_ = false;
  labels_ = std::make_unique<sites::Labels>(stacks, false);
  std::vector<std::uint32_t> known(labels_->all().size());  // by label
  const std::vector<std::uint32_t> before = std::move(site_of_);
  site_of_.assign(stacks.nodes().size() + 1, 0);
  for (std::uint32_t node = 0; node < stacks.nodes().size(); ++node) {
    const sites::Label& label = labels_->speaker(node);
    std::uint32_t& place = known[labels_->speaker_place(node)];
    if (place == 0) place = find_site(labels_->text(label.function), labels_->text(label.module));
    const std::uint32_t site = site_of_[node + 1] = place;
    // What a site took over from one without a name has not grown now.
    if (node + 1 < before.size() && before[node + 1] != site) {
      for (const std::uint32_t changed : {before[node + 1], site}) {
        sites_[changed].growth = {counts_.time_ns(), 0, 0, 0, 0};
        sites_[changed].growth.begin_bytes = std::numeric_limits<std::uint64_t>::max();
      }
    }
  }
}

void Report::add_up() {
  for (Site& site : sites_) site.totals = {};
  const auto& stacks = counts_.stacks();
  for (std::uint32_t i = 0; i < stacks.size(); ++i) {
    const StackCounts& counts = stacks[i];
    if (counts.live_blocks == 0 && counts.allocations == 0) continue;
    Totals& totals = sites_[site_of(i)].totals;
    totals.allocations += counts.allocations;
    totals.bytes += counts.bytes;
    totals.live.blocks += counts.live_blocks;
    totals.live.bytes += counts.live_bytes;
    const Held since_mark = counts_.since_mark(i);
    totals.since_mark.blocks += since_mark.blocks;
    totals.since_mark.bytes += since_mark.bytes;
  }
  const std::uint64_t now = counts_.time_ns();
  for (Site& site : sites_) {
    Growth& growth = site.growth;
    const std::uint64_t bytes = site.totals.live.bytes;
    if (bytes < growth.bytes || growth.begin_bytes == std::numeric_limits<std::uint64_t>::max()) {
      growth = {now, bytes, bytes, now, 0};
    } else if (bytes > growth.bytes) {
      ++growth.rises;
      growth.last_rise_ns = now;
      growth.bytes = bytes;
    }
  }
}

Json Report::listed(Ranked ranked, const std::vector<Totals>& totals) const {
  std::sort(ranked.begin(), ranked.end(),
            [](const auto& a, const auto& b) { return a.first != b.first ? a.first > b.first : a.second < b.second; });
  if (ranked.size() > limit_) ranked.resize(limit_);
  Json list = Json::array();
  for (const auto& [rank, index] : ranked) {
    const Site& site = sites_[index];
    const Totals& one = totals.empty() ? site.totals : totals[index];
    list.push_back({{"site", index},
                    {"function", site.function},
                    {"module", site.module},
                    {"allocations", one.allocations},
                    {"bytes", one.bytes},
                    {"live", json_of(site.totals.live)}});
  }
  return list;
}

Json Report::frame_json(const Frame& frame) const {
  std::vector<Totals> totals(sites_.size());
  for (const FrameSite& one : frame.sites) {
    Totals& site = totals[site_of(one.stack)];
    site.allocations += one.allocations;
    site.bytes += one.bytes;
  }
  Ranked ranked;
  for (std::uint32_t i = 0; i < totals.size(); ++i) {
    if (totals[i].allocations != 0) ranked.emplace_back(totals[i].allocations, i);
  }
  return {{"number", frame.number}, {"begin_ns", frame.begin_ns},
          {"ns", frame.length_ns},  {"allocations", frame.allocations},
          {"bytes", frame.bytes},   {"sites", listed(std::move(ranked), totals)}};
}

Json Report::growing() const {
  Ranked ranked;
  const std::uint64_t now = counts_.time_ns();
  for (std::uint32_t i = 0; i < sites_.size(); ++i) {
    const Growth& growth = sites_[i].growth;
    if (growth.rises < fewest_rises || now - growth.last_rise_ns > lately_ns) continue;
    ranked.emplace_back(growth.bytes - growth.begin_bytes, i);
  }
  Json list = listed(std::move(ranked), {});
  for (Json& one : list) {
    const Growth& growth = sites_[one["site"].get<std::uint32_t>()].growth;
    one["grown"] = growth.bytes - growth.begin_bytes;
    one["for_ns"] = now - growth.begin_ns;
  }
  return list;
}

Json Report::line() {
  label();
  add_up();
  const journal::Header& header = source_.header();
  Json frames = {{"marked", counts_.marks_frames()},
                 {"budget_ns", budget_ns_},
                 {"count", counts_.frame_count()},
                 {"over_budget", counts_.over_budget()},
                 {"first", 0},
                 {"ns", Json::array()},
                 {"allocations", Json::array()},
                 {"bytes", Json::array()}};
  // When a thread begins to mark frames, they are counted anew.
  if (next_frame_ > counts_.frame_count() + 1) next_frame_ = 1;
  const Frame* worst = nullptr;
  const bool by_time = counts_.marks_frames();
  for (const Frame& frame : counts_.frames()) {
    const bool is_worse =
        worst == nullptr || (by_time ? frame.length_ns > worst->length_ns : frame.allocations > worst->allocations);
    if (is_worse) worst = &frame;
    if (frame.number < next_frame_) continue;
    if (frames["ns"].empty()) frames["first"] = frame.number;
    frames["ns"].push_back(frame.length_ns);
    frames["allocations"].push_back(frame.allocations);
    frames["bytes"].push_back(frame.bytes);
  }
  next_frame_ = counts_.frame_count() + 1;
  Ranked most;
  Ranked left;
  Held left_all;
  for (std::uint32_t i = 0; i < sites_.size(); ++i) {
    const Totals& totals = sites_[i].totals;
    if (totals.allocations != 0) most.emplace_back(totals.allocations, i);
    if (totals.since_mark.blocks != 0) left.emplace_back(totals.since_mark.bytes, i);
    left_all.blocks += totals.since_mark.blocks;
    left_all.bytes += totals.since_mark.bytes;
  }
  Json threads = Json::array();
  for (std::size_t i = 0; i < header.threads.size(); ++i) {
    Json one = {{"id", header.threads[i].id}, {"name", header.threads[i].name}};
    one.update(json_of(i < counts_.threads().size() ? counts_.threads()[i] : Calls()));
    threads.push_back(std::move(one));
  }
  Json tags = Json::array();
  for (std::size_t i = 1; i < counts_.tags().size() && i < header.names.size(); ++i) {
    const TagCounts& tag = counts_.tags()[i];
    if (tag.live.blocks == 0 && tag.calls.allocations == 0 && tag.calls.frees == 0) continue;
    Json one = {{"name", header.names[i]}, {"live", json_of(tag.live)}};
    one.update(json_of(tag.calls));
    tags.push_back(std::move(one));
  }
  Json mark = nullptr;
  if (counts_.mark_ns() != Counts::no_mark) {
    mark = {{"at_ns", counts_.mark_ns()},
            {"left", json_of(left_all)},
            {"older_freed", json_of(counts_.older_freed())},
            {"sites", listed(std::move(left), {})}};
    for (Json& one : mark["sites"]) {
      one["left"] = json_of(sites_[one["site"].get<std::uint32_t>()].totals.since_mark);
    }
  }
  return {{"program", header.program},
          {"time_ns", counts_.time_ns()},
          {"window_ns", counts_.window_ns()},
          {"events", counts_.events()},
          {"all", json_of(counts_.all())},
          {"last", json_of(counts_.window())},
          {"live", json_of(counts_.live())},
          {"peak_bytes", counts_.peak_bytes()},
          {"frames", std::move(frames)},
          {"sites", listed(std::move(most), {})},
          {"worst_frame", worst == nullptr ? Json(nullptr) : frame_json(*worst)},
          {"growing", growing()},
          {"mark", std::move(mark)},
          {"threads", std::move(threads)},
          {"tags", std::move(tags)}};
}

Json Report::frame(std::uint64_t number) {
  label();
  for (const Frame& frame : counts_.frames()) {
    if (frame.number == number) return {{"frame", frame_json(frame)}};
  }
  return {{"frame", {{"number", number}, {"sites", nullptr}}}};
}

Json Report::stacks(std::uint32_t site) {
  label();
  std::vector<std::uint32_t> found;
  const auto& counts = counts_.stacks();
  for (std::uint32_t i = 1; i < std::min(counts.size(), site_of_.size()); ++i) {
    if (site_of_[i] == site && counts[i].has_allocated) found.push_back(i);
  }
  std::sort(found.begin(), found.end(), [&](std::uint32_t a, std::uint32_t b) {
    const std::uint32_t first = counts_.last_allocations(a);
    const std::uint32_t second = counts_.last_allocations(b);
    return first != second ? first > second : counts[a].live_bytes > counts[b].live_bytes;
  });
  Json list = Json::array();
  const journal::Stacks& stacks = source_.stacks();
  for (std::size_t i = 0; i < std::min(found.size(), shown_stacks); ++i) {
    const Held live{counts[found[i]].live_blocks, counts[found[i]].live_bytes};
    Json functions = Json::array();
    for (std::uint32_t node = found[i] - 1; node != journal::no_node; node = stacks.nodes()[node].parent) {
      for (const sites::Label& label : labels_->of_frame(stacks.nodes()[node].frame)) {
        functions.push_back({{"function", labels_->text(label.function)},
                             {"file", labels_->text(label.file)},
                             {"line", label.line},
                             {"module", labels_->text(label.module)}});
      }
    }
    list.push_back({{"allocations", counts_.last_allocations(found[i])},
                    {"live", json_of(live)},
                    {"left", json_of(counts_.since_mark(found[i]))},
                    {"functions", std::move(functions)}});
  }
  return {{"stacks", {{"site", site}, {"count", found.size()}, {"stacks", std::move(list)}}}};
}

}  // namespace blockyard::live
