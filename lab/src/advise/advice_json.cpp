#include <algorithm>
#include <array>
#include <bit>
#include <map>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "advise/advise.hpp"

namespace blockyard::advise {
namespace {

using journal::Json;

Json examples_json(const Held& held) {
  Json list = Json::array();
  std::vector<CounterExample> sorted = held.examples;
  std::sort(sorted.begin(), sorted.end(),
            [](const CounterExample& a, const CounterExample& b) { return a.event < b.event; });
  for (const CounterExample& one : sorted) {
    list.push_back({{"event", one.event},
                    {"time_ns", one.born_ns},
                    {"freed_ns", one.freed ? Json(one.ended_ns) : Json()},
                    {"bytes", one.bytes},
                    {"why", one.why}});
  }
  return list;
}

Json held_json(const Held& held) {
  return {{"holds", held.holds},
          {"broken", held.broken},
          {"undecided", held.undecided},
          {"counterexamples", examples_json(held)}};
}

Json validation_json(const Validation& one) {
  const auto share = [](double part, double whole) { return whole > 0 ? Json(part / whole) : Json(); };
  const auto count = [](std::uint64_t value) { return static_cast<double>(value); };
  Json json = Json::object();
  if (!one.journal.empty()) json["journal"] = one.journal;
  json["changes"] = one.pieces;
  json["changes_met"] = one.pieces_met;
  json["changes_held"] = one.pieces_held;
  json["blocks"] = one.holds + one.broken;
  json["broken"] = one.broken;
  json["precision"] = share(count(one.holds), count(one.holds + one.broken));
  json["coverage"] = share(one.held_cost, one.cost);
  json["baseline"] = {{"blocks", one.baseline_holds + one.baseline_broken},
                      {"broken", one.baseline_broken},
                      {"precision", share(count(one.baseline_holds), count(one.baseline_holds + one.baseline_broken))},
                      {"coverage", share(one.baseline_held_cost, one.cost)}};
  return json;
}

std::string_view name_of(Reason reason) {
  constexpr std::string_view names[] = {"mixed", "few", "near_miss", "long_lived", "mixed"};
  return names[static_cast<std::size_t>(reason)];
}

class Writer {
 public:
  explicit Writer(const Advice& advice) : advice_(advice), contexts_(advice.recording, words_) {}

  Json all() {
    const Recording& recording = advice_.recording;
    const Profile& profile = advice_.profile;
    Json json = {{"journal", recording.path},
                 {"program", recording.header.program},
                 {"allocator", recording.header.allocator},
                 {"events", recording.events},
                 {"allocations", recording.allocations},
                 {"duration_ns", recording.duration_ns},
                 {"marked_frames", recording.has_frames()},
                 {"frames", profile.frames},
                 {"has_names", recording.stacks->has_names()},
                 {"dotnet", is_dotnet()},
                 {"cpp", has_cpp()},
                 {"sites", profile.leaves.size()},
                 {"estimated_ns", profile.cost},
                 {"estimated_worst_frame_ns", profile.worst_frame_cost},
                 {"worst_frame_ns", profile.worst_frame_ns}};
    Json advised = Json::array();
    Json left = Json::array();
    for (std::size_t i = 0; i < advice_.pieces.size(); ++i) {
      const bool leave = advice_.pieces[i].what == What::leave;
      (leave ? left : advised).push_back(piece_json(i));
    }
    json["advice"] = std::move(advised);
    json["leave"] = std::move(left);
    json["left_count"] = advice_.choice.left.size();
    json["inside"] = Json::array();
    for (const Inside& one : advice_.choice.inside) {
      json["inside"].push_back({{"module", one.module}, {"cost_ns", one.cost}});
    }
    json["halves"] = advice_.halves.pieces == 0 ? Json() : validation_json(advice_.halves);
    json["on"] = Json::array();
    for (const Validation& one : advice_.on) json["on"].push_back(validation_json(one));
    json["notes"] = recording.notes;
    return json;
  }

 private:
  bool is_dotnet() const {
    constexpr std::array<std::string_view, 4> runtimes{"libcoreclr", "libclrjit", "libmonosgen", "libmono-2.0"};
    const auto modules = advice_.recording.stacks->modules();
    return std::any_of(modules.begin(), modules.end(), [&](const journal::Module& module) {
      const std::string_view path = module.path;
      const std::string_view file = path.substr(path.rfind('/') + 1);
      return file.starts_with("mono-sgen") ||
             std::any_of(runtimes.begin(), runtimes.end(), [&](auto runtime) { return file.starts_with(runtime); });
    });
  }

  /// Is there a sign of C++? Its libraries allocate before main(); of a program that links them in only names tell.
  bool has_cpp() const {
    constexpr std::array<std::string_view, 3> libraries{"libstdc++.", "libc++.", "libc++abi."};
    const sites::Labels& labels = *advice_.recording.labels;
    return std::any_of(labels.all().begin(), labels.all().end(), [&](const sites::Label& label) {
      const std::string_view file = labels.text(label.module);
      const std::string_view name = labels.text(label.function);
      return name.find("::") != name.npos || (name.find('(') != name.npos && !name.starts_with('[')) ||
             std::any_of(libraries.begin(), libraries.end(), [&](auto library) { return file.starts_with(library); });
    });
  }

  Json step_json(const Context& context, std::size_t step) const {
    const Word& word = advice_.words[context[step]];
    Json json = {{"function", word.function}, {"module", word.module}, {"file", word.file}, {"line", 0}};
    if (step + 1 < context.size() && advice_.words[context[step + 1]].is_place) {
      const Word& place = advice_.words[context[step + 1]];
      if (!place.is_address) json["line"] = place.place;
    }
    return json;
  }

  Json context_json(const Context& context) const {
    Json steps = Json::array();
    for (std::size_t step = 0; step < context.size(); ++step) {
      if (!advice_.words[context[step]].is_place) steps.push_back(step_json(context, step));
    }
    return steps;
  }

  /// The function to change: that of the scope, or the outermost that the context names. In place of a library's own
  /// function it is the nearest caller that the program can change, and `through` names the library's.
  Json where_json(const Piece& piece) const {
    const Recording& recording = advice_.recording;
    const auto nodes = recording.stacks->nodes();
    const sites::Labels& labels = *recording.labels;
    std::string function = piece.scope_function;
    if (piece.what != What::temp_scope) {
      for (const std::uint32_t word : piece.contexts.front()) {
        if (!advice_.words[word].is_place) function = advice_.words[word].function;
      }
    }
    for (std::uint32_t node = piece.node; node != journal::no_node; node = nodes[node].parent) {
      for (const sites::Label& label : labels.of_frame(nodes[node].frame)) {
        if (labels.text(label.function) != function) continue;
        if (!recording.foreign[label.function]) {
          Json json = place_json(label);
          const std::uint32_t entry = entry_of(piece.node);
          if (entry != journal::no_node) {
            json["through"] = place_json(recording.label_of(entry));
          }
          return json;
        }
        const std::uint32_t own = recording.own[node];
        Json json = place_json(own == journal::no_node ? label : recording.label_of(own));
        json["through"] = own == journal::no_node ? Json() : place_json(label);
        return json;
      }
    }
    return {{"function", function}, {"module", ""}, {"file", ""}, {"line", 0}};
  }

  /// Where a library of the system allocates: the node of its function that the program calls; else no_node. The
  /// recorder's own hook, which may stand between both, is not named.
  std::uint32_t entry_of(std::uint32_t node) const {
    const Recording& recording = advice_.recording;
    const auto nodes = recording.stacks->nodes();
    const std::uint32_t own = recording.own[node];
    if (own == node || !recording.foreign[recording.labels->speaker(node).function]) return journal::no_node;
    std::uint32_t entry = journal::no_node;
    for (; node != own && node != journal::no_node; node = nodes[node].parent) {
      const std::string& module = recording.labels->text(recording.label_of(node).module);
      if (!module.starts_with("libblockyard-record.")) entry = node;
    }
    return entry;
  }

  Json place_json(const sites::Label& label) const {
    const sites::Labels& labels = *advice_.recording.labels;
    return {{"function", labels.text(label.function)},
            {"module", labels.text(label.module)},
            {"file", labels.text(label.file)},
            {"line", label.line}};
  }

  /// What stands around the function to change: `asks`, the function that asks in its name, and the blocks that this
  /// one asks for elsewhere (`serves`); who calls it; and where the blocks are freed. The most frequent come first.
  void add_neighbours(const Piece& piece, const Evidence& evidence, Json& json) const {
    const Recording& recording = advice_.recording;
    const sites::Labels& labels = *recording.labels;
    const std::string where = json["where"]["function"];
    std::map<std::tuple<std::uint32_t, std::uint32_t, std::uint32_t>, std::pair<sites::Label, std::uint64_t>> callers;
    for (const auto& [node, lives] : evidence.nodes) {
      if (const sites::Label* const caller = caller_of(node, where)) {
        auto& [label, count] =
            callers.try_emplace({caller->function, caller->file, caller->line}, *caller, 0).first->second;
        count += lives;
      }
    }
    std::vector<std::pair<sites::Label, std::uint64_t>> found;
    for (const auto& [unused, caller] : callers) found.push_back(caller);
    json["callers"] = places_json(found);
    found.clear();
    std::map<std::tuple<std::uint32_t, std::uint32_t, std::uint32_t>, std::uint64_t> freed;
    for (const auto& [place, lives] : evidence.freed_at) {
      const sites::Label& label = labels.all()[place];
      freed[{label.function, label.file, label.line}] += lives;
      found.emplace_back(label, 0);
    }
    std::erase_if(found, [&](auto& one) {
      const auto known = freed.find({one.first.function, one.first.file, one.first.line});
      if (known == freed.end()) return true;
      one.second = known->second;
      freed.erase(known);
      return false;
    });
    json["freed_at"] = places_json(found);
    const sites::Label& asks = labels.speaker(piece.node);
    if (labels.text(asks.function) == where || recording.asks_alone[piece.node]) return;
    json["asks"] = place_json(asks);
    std::uint64_t serves = 0;
    for (const Leaf& leaf : advice_.profile.leaves) {
      if (labels.speaker(leaf.node).function != asks.function) continue;
      const auto own = evidence.nodes.find(leaf.node);
      serves += leaf.tally.lives - std::min(leaf.tally.lives, own == evidence.nodes.end() ? 0 : own->second);
    }
    json["serves"] = serves;
  }

  /// The function of the program that calls `function` on a stack.
  const sites::Label* caller_of(std::uint32_t node, const std::string& function) const {
    const Recording& recording = advice_.recording;
    const auto nodes = recording.stacks->nodes();
    const sites::Labels& labels = *recording.labels;
    bool inside = false;
    for (; node != journal::no_node; node = nodes[node].parent) {
      for (const sites::Label& label : labels.of_frame(nodes[node].frame)) {
        if (labels.text(label.function) == function) {
          inside = true;
        } else if (inside && recording.own[node] == node && !labels.wraps(label.function)) {
          return &label;
        }
      }
    }
    return nullptr;
  }

  /// `all` is how many there are.
  Json places_json(std::vector<std::pair<sites::Label, std::uint64_t>>& found) const {
    constexpr std::size_t most = 3;
    std::sort(found.begin(), found.end(), [this](const auto& a, const auto& b) {
      const auto key = [this](const auto& one) {
        return std::tuple(~one.second, advice_.recording.labels->text(one.first.function), one.first.line);
      };
      return key(a) < key(b);
    });
    Json json = {{"all", found.size()}, {"places", Json::array()}};
    for (std::size_t i = 0; i < std::min(most, found.size()); ++i) json["places"].push_back(place_json(found[i].first));
    return json;
  }

  Json piece_json(std::size_t index) const {
    const Piece& piece = advice_.pieces[index];
    const Evidence& evidence = advice_.verdict.pieces[index];
    Json json = {{"id", index + 1}, {"what", advise::name_of(piece.what)}};
    if (piece.what == What::leave) {
      json["reason"] = name_of(piece.reason);
    } else {
      json["group"] = index;
    }
    json["near"] = piece.near == What::leave ? Json() : Json(advise::name_of(piece.near));
    json["where"] = where_json(piece);
    json["contexts"] = Json::array();
    for (const Context& context : piece.contexts) json["contexts"].push_back(context_json(context));
    if (piece.asker != 0) json["asker"] = advice_.words[piece.asker].function;
    add_neighbours(piece, evidence, json);
    json["bytes"] = piece.bytes;
    json["size"] = piece.size;
    json["evidence"] = {{"lives", evidence.lives},
                        {"blocks", evidence.blocks},
                        {"bytes", evidence.bytes},
                        {"frames", evidence.frames},
                        {"frames_crossed", evidence.most_frames_crossed},
                        {"threads", std::popcount(evidence.threads)},
                        {"remote_frees", evidence.remote_frees},
                        {"reverse_frees", evidence.reverse_frees},
                        {"reallocations", piece.tally.reallocations},
                        {"copies", piece.tally.copies},
                        {"freed", piece.tally.freed},
                        {"frame_bytes", piece.tally.frame_bytes},
                        {"peak_bytes", piece.tally.peak_bytes},
                        {"peak_blocks", evidence.peak_blocks},
                        {"region_bytes", evidence.region_bytes},
                        {"other_sizes", evidence.other_sizes},
                        {"periods", evidence.periods}};
    if (piece.what != What::leave) json["held"] = held_json(evidence.what);
    if (piece.near != What::leave) json["near_held"] = held_json(evidence.near);
    // Blocks that break the advice stay where they are.
    const double routed =
        evidence.lives == 0 ? 0 : static_cast<double>(evidence.what.holds) / static_cast<double>(evidence.lives);
    const double saved = piece.saved * routed;
    const double part = evidence.cost > 0 ? saved / evidence.cost : 0;
    json["estimate"] = {
        {"cost_ns", evidence.cost}, {"saved_ns", saved}, {"worst_frame_saved_ns", evidence.worst_frame_cost * part}};
    json["on"] = Json::array();
    for (const Verdict& verdict : advice_.on_verdicts) {
      const Evidence& other = verdict.pieces[index];
      const Held& held = piece.what == What::leave ? other.near : other.what;
      json["on"].push_back({{"lives", other.lives},
                            {"holds", held.holds},
                            {"broken", held.broken},
                            {"counterexamples", examples_json(held)}});
    }
    return json;
  }

  const Advice& advice_;
  Words words_;
  Contexts contexts_;
};

}  // namespace

journal::Json advice_json(const Advice& advice) { return Writer(advice).all(); }

}  // namespace blockyard::advise
