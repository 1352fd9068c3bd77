#include <algorithm>
#include <array>
#include <bit>

#include "journal/facts.hpp"
#include "journal/json_text.hpp"

namespace blockyard::journal {
namespace {

double share(std::uint64_t part, std::uint64_t whole) {
  return whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
}

// Among them the bounds of the size classes in reports.
constexpr std::array<std::uint64_t, 11> cumulative_bounds{16,   32,   64,    128,    256,    512,
                                                          1024, 4096, 32768, 131072, 1048576};

// The size at rank floor(fraction * count), counted from 0, of all in rising order; 0 of nothing.
std::uint64_t percentile(const Facts& facts, double fraction) {
  const auto rank = static_cast<std::uint64_t>(fraction * static_cast<double>(facts.allocations));
  std::uint64_t seen = 0;
  for (const auto& [size, times] : facts.sizes) {
    seen += times;
    if (seen > rank) return size;
  }
  return 0;
}

Json sizes_of(const Facts& facts) {
  Json sizes;
  sizes["mean"] =
      facts.allocations == 0 ? 0 : static_cast<double>(facts.total_bytes) / static_cast<double>(facts.allocations);
  sizes["median"] = percentile(facts, 0.5);
  sizes["p99"] = percentile(facts, 0.99);
  sizes["p999"] = percentile(facts, 0.999);
  sizes["largest"] = facts.sizes.empty() ? 0 : facts.sizes.back().first;
  sizes["zero"] = !facts.sizes.empty() && facts.sizes.front().first == 0 ? facts.sizes.front().second : 0;
  sizes["cumulative"] = Json::array();
  for (const std::uint64_t bound : cumulative_bounds) {
    std::uint64_t blocks = 0;
    for (const auto& [size, times] : facts.sizes) blocks += size <= bound ? times : 0;
    sizes["cumulative"].push_back(
        {{"at_most", bound}, {"blocks", blocks}, {"share", share(blocks, facts.allocations)}});
  }
  sizes["histogram"] = Json::array();
  for (auto next = facts.sizes.begin(); next != facts.sizes.end();) {
    const std::uint64_t from = std::bit_floor(next->first);
    const std::uint64_t below = from == 0 ? 1 : 2 * from;
    std::uint64_t blocks = 0;
    std::uint64_t bytes = 0;
    for (; next != facts.sizes.end() && next->first < below; ++next) {
      blocks += next->second;
      bytes += next->first * next->second;
    }
    sizes["histogram"].push_back({{"from", from}, {"below", below}, {"blocks", blocks}, {"bytes", bytes}});
  }
  return sizes;
}

Json threads_of(const Facts& facts) {
  Json threads = Json::array();
  for (std::size_t i = 0; i < facts.threads.size(); ++i) {
    const ThreadFacts& thread = facts.threads[i];
    threads.push_back({{"id", facts.header.threads[i].id},
                       {"name", facts.header.threads[i].name},
                       {"allocations", thread.allocations},
                       {"frees", thread.frees},
                       {"remote_frees", thread.remote_frees},
                       {"bytes", thread.bytes},
                       {"preamble_blocks", thread.preamble},
                       {"frame_marks", thread.frame_marks}});
  }
  return threads;
}

Json lifetimes_of(const Facts& facts) {
  std::uint64_t all = 0;
  for (const std::uint64_t blocks : facts.lifetimes) all += blocks;
  Json lifetimes = Json::array();
  for (std::size_t i = 0; i < facts.lifetimes.size(); ++i) {
    Json lifetime;
    lifetime["below_ns"] = i < lifetime_bounds_ns.size() ? Json(lifetime_bounds_ns[i]) : Json(nullptr);
    lifetime["blocks"] = facts.lifetimes[i];
    lifetime["share"] = share(facts.lifetimes[i], all);
    lifetimes.push_back(lifetime);
  }
  return lifetimes;
}

// The share of the frames that half of all events fall into: small when work comes in bursts.
double busy_share(std::vector<std::uint64_t> events, std::uint64_t all_frames) {
  std::sort(events.begin(), events.end(), std::greater<>());
  std::uint64_t all = 0;
  for (const std::uint64_t count : events) all += count;
  std::uint64_t seen = 0;
  std::size_t frames = 0;
  while (frames < events.size() && 2 * seen < all) seen += events[frames++];
  return share(frames, all_frames);
}

// Percentiles of `count` values: the given ones, and zeros.
Json percentiles_of(std::vector<std::uint64_t> values, std::uint64_t count) {
  std::sort(values.begin(), values.end());
  const std::uint64_t zeros = count - values.size();
  Json result;
  constexpr std::array<std::pair<const char*, double>, 4> wanted{
      {{"p50", 0.5}, {"p90", 0.9}, {"p99", 0.99}, {"p999", 0.999}}};
  for (const auto& [name, fraction] : wanted) {
    const auto rank = std::min(static_cast<std::uint64_t>(fraction * static_cast<double>(count)), count - 1);
    result[name] = count == 0 || rank < zeros ? 0 : values[rank - zeros];
  }
  result["max"] = values.empty() ? 0 : values.back();
  return result;
}

Json frames_of(const Facts& facts) {
  Json result;
  result["marked"] = facts.marked_frames;
  if (facts.marked_frames) result["thread"] = facts.frame_thread;
  if (!facts.marked_frames) result["frame_ns"] = default_frame_ns;
  result["count"] = facts.frame_count;
  std::vector<std::uint64_t> events;
  std::vector<std::uint64_t> lengths;
  const FrameFacts none;
  const FrameFacts* most_events = &none;
  const FrameFacts* most_bytes = &none;
  for (const FrameFacts& frame : facts.frames) {
    events.push_back(frame.events);
    lengths.push_back(frame.end_ns - frame.begin_ns);
    if (frame.events > most_events->events) most_events = &frame;
    if (frame.bytes > most_bytes->bytes) most_bytes = &frame;
  }
  result["events"] = percentiles_of(events, facts.frame_count);
  result["share_with_half_of_events"] = busy_share(events, facts.frame_count);
  if (facts.marked_frames) result["length_ns"] = percentiles_of(lengths, facts.frame_count);
  result["most_events"] = {{"events", most_events->events}, {"at_ns", most_events->begin_ns}};
  result["most_bytes"] = {{"bytes", most_bytes->bytes}, {"at_ns", most_bytes->begin_ns}};
  return result;
}

Json stacks_of(const StackFacts& stacks) {
  Json incomplete = Json::object();
  for (const auto& [reason, events] : stacks.incomplete_events) incomplete[std::string(reason)] = events;
  return {{"modules", stacks.modules},       {"modules_without_names", stacks.modules_without_names},
          {"addresses", stacks.addresses},   {"named_addresses", stacks.named_addresses},
          {"sites", stacks.sites},           {"events", stacks.events},
          {"incomplete_events", incomplete}, {"tagged_events", stacks.tagged_events}};
}

}  // namespace

std::string facts_json(const Facts& facts) {
  const Header& header = facts.header;
  Json json;
  json["form"] = facts.form;
  json["file_bytes"] = facts.file_bytes;
  json["bytes_per_event"] = share(facts.file_bytes, facts.events);
  json["program"] = header.program;
  json["command"] = header.command;
  json["machine"] = header.machine;
  json["recorder"] = header.recorder;
  json["allocator"] = header.allocator;
  json["unseen"] = header.unseen;
  json["started_at"] = header.started_at;
  json["ticks_per_ns"] = header.ticks_per_ns;
  json["paced"] = header.paced;
  json["has_addresses"] = header.has_addresses;
  json["cut_at_end"] = header.cut_at_end;
  json["repairs"] = header.repairs;
  // Journals made of heaptrack's recordings before they said so know no threads either.
  json["threads_known"] = header.threads_known && !header.recorder.starts_with("heaptrack");
  json["events"] = facts.events;
  json["duration_ns"] = facts.duration_ns;
  const auto kind = [&facts](Kind k) { return facts.kinds[static_cast<std::size_t>(k)]; };
  json["kinds"] = {{"allocate", kind(Kind::allocate)},
                   {"allocate_zeroed", kind(Kind::allocate_zeroed)},
                   {"allocate_aligned", kind(Kind::allocate_aligned)},
                   {"free", kind(Kind::free)},
                   {"reallocate", kind(Kind::reallocate)},
                   {"frame_mark", kind(Kind::frame_mark)},
                   {"phase_mark", kind(Kind::phase_mark)}};
  json["preamble"] = {
      {"blocks", facts.preamble_blocks}, {"bytes", facts.preamble_bytes}, {"zero_sizes", facts.preamble_zero_sizes}};
  json["allocations"] = facts.allocations;
  json["frees"] = facts.frees;
  json["total_bytes"] = facts.total_bytes;
  json["max_live_bytes"] = facts.max_live_bytes;
  json["max_live_bytes_at_ns"] = facts.max_live_bytes_at_ns;
  json["max_live_blocks"] = facts.max_live_blocks;
  json["live_at_end"] = {{"blocks", facts.live_blocks}, {"bytes", facts.live_bytes}};
  json["remote_frees"] = facts.remote_frees;
  json["remote_free_share"] = share(facts.remote_frees, facts.frees);
  json["sizes"] = sizes_of(facts);
  json["lifetimes"] = lifetimes_of(facts);
  json["threads"] = threads_of(facts);
  json["frames"] = frames_of(facts);
  json["stacks"] = stacks_of(facts.stacks);
  json["phases"] = Json::array();
  for (std::size_t i = 1; i < header.names.size(); ++i) json["phases"].push_back(header.names[i]);
  json["notes"] = facts.notes;
  return json_text(json);
}

}  // namespace blockyard::journal
