#include "advise/recording.hpp"

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "advise/lives.hpp"
#include "journal/flat_map.hpp"
#include "journal/frame_marks.hpp"
#include "journal/reader.hpp"
#include "journal/stack_copy.hpp"
#include "journal/system_code.hpp"

namespace blockyard::advise {
namespace {

using journal::Error;
using journal::Event;
using journal::Kind;

/// Routes number events with 32 bits.
constexpr std::uint64_t most_events = std::numeric_limits<std::uint32_t>::max();

/// After so many frames the functions around them are known.
constexpr std::uint64_t frames_looked_at = 64;

/// A function whose call goes on from one mark to the next encloses frames: a scope in it is no scope within a frame.
void find_frame_functions(Recording& recording) {
  CallPath path;
  std::uint64_t marks = 0;
  std::uint64_t last_mark = 0;  // the thread's turn
  const auto nodes = recording.stacks->nodes();
  journal::for_each_event(*journal::open(recording.path), {}, [&](const Event& event) {
    if (event.thread != recording.frame_thread) return true;
    path.go_to(event.site, recording);
    if (event.kind != Kind::frame_mark) return true;
    if (++marks > 1) {
      for (const std::uint32_t node : path.calls_since(last_mark)) {
        for (const sites::Label& label : recording.labels->of_frame(nodes[node].frame)) {
          recording.enclosing.insert(label.function);
        }
      }
    }
    last_mark = path.turn();
    return marks <= frames_looked_at;
  });
}

/// main() and what calls it go on for as long as the program does.
void find_starts(Recording& recording) {
  const auto nodes = recording.stacks->nodes();
  recording.starts_program.resize(nodes.size());
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    for (const sites::Label& label : recording.labels->of_frame(nodes[i].frame)) {
      if (!journal::starts_program(recording.labels->text(label.function))) continue;
      recording.starts_program[i] = true;
      recording.enclosing.insert(label.function);
    }
  }
}

/// Where main() is all that a program has of its own, and calls a library that does the rest, as interpreters do,
/// the library is the program. `system` is by module.
void adopt_libraries(const Recording& recording, std::vector<bool>& system) {
  const auto nodes = recording.stacks->nodes();
  const auto frames = recording.stacks->frames();
  const auto module_of = [&](std::uint32_t node) { return frames[nodes[node].frame].module; };
  std::vector<bool> is_main(frames.size());
  for (const journal::Node& node : nodes) {
    if (node.parent != journal::no_node && recording.starts_program[node.parent]) is_main[node.frame] = true;
  }
  std::vector<bool> calls(nodes.size());
  std::set<std::uint32_t> called;
  std::uint32_t starter = journal::no_module;
  for (std::uint32_t i = 0; i < nodes.size(); ++i) {
    const std::uint32_t caller = nodes[i].parent;
    if (recording.starts_program[i]) starter = module_of(i);
    if (caller == journal::no_node) continue;
    calls[caller] = true;
    if (is_main[nodes[caller].frame] && module_of(i) < system.size()) called.insert(module_of(i));
  }
  for (std::uint32_t i = 0; i < nodes.size(); ++i) {
    const bool is_own = module_of(i) != journal::end_marker && (module_of(i) >= system.size() || !system[module_of(i)]);
    if (is_own && (!calls[i] || (nodes[i].parent != journal::no_node && !is_main[nodes[i].frame]))) return;
  }
  called.erase(starter);
  for (const std::uint32_t module : called) system[module] = false;
}

void find_own(Recording& recording) {
  const auto nodes = recording.stacks->nodes();
  const auto frames = recording.stacks->frames();
  const auto modules = recording.stacks->modules();
  const sites::Labels& labels = *recording.labels;
  std::vector<bool> system;
  for (const journal::Module& one : modules) {
    system.push_back(journal::is_of_system(one.path, recording.header.program));
  }
  adopt_libraries(recording, system);
  recording.foreign.resize(labels.texts());
  std::vector<bool> is_own(frames.size());
  for (std::uint32_t i = 0; i < frames.size(); ++i) {
    const bool of_system = frames[i].module < modules.size() && system[frames[i].module];
    for (const sites::Label& label : labels.of_frame(i)) {
      if (of_system) recording.foreign[label.function] = true;
      if (!of_system && frames[i].module != journal::end_marker && !labels.wraps(label.function)) is_own[i] = true;
    }
  }
  recording.own.resize(nodes.size());
  recording.asks_alone.resize(nodes.size());
  for (std::uint32_t i = 0; i < nodes.size(); ++i) {
    const std::uint32_t caller = nodes[i].parent;
    const std::uint32_t frame = nodes[i].frame;
    const auto of_frame = labels.of_frame(frame);
    const bool only_wraps =
        frames[frame].module == journal::end_marker ||
        std::all_of(of_frame.begin(), of_frame.end(), [&](const auto& one) { return labels.wraps(one.function); });
    recording.own[i] = is_own[frame] ? i : caller == journal::no_node ? journal::no_node : recording.own[caller];
    recording.asks_alone[i] = only_wraps ? caller != journal::no_node && recording.asks_alone[caller] : !is_own[frame];
  }
}

/// Growth of one block alone is chance: a value that is replaced by a larger one.
void find_growths(Recording& recording, const journal::Progress& progress) {
  struct Live {
    std::uint64_t size = 0;
    std::uint32_t function = 0;  ///< that allocates; 0 is unknown
    std::uint32_t grown = 0;     ///< times
    Growth last;
  };
  struct New {
    std::uint64_t block = journal::no_block;
    std::uint32_t event = 0;
  };
  journal::FlatMap<Live> live(1U << 16);  // by block + 1
  std::vector<New> newest;                // by thread: what its last event allocated
  const auto grow = [&](const Live& old, const New& given, std::uint32_t event) {
    Live* const taker = given.block == journal::no_block ? nullptr : live.find(given.block + 1);
    if (taker == nullptr || taker->size <= old.size || taker->function != old.function || old.function == 0) return;
    taker->grown = old.grown + 1;
    taker->last = {given.event, event};
    if (taker->grown == 2) recording.growths.push_back(old.last);
    if (taker->grown >= 2) recording.growths.push_back(taker->last);
  };
  std::uint32_t number = 0;
  journal::for_each_event(*journal::open(recording.path), progress, [&](const Event& event) {
    if (event.thread >= newest.size()) newest.resize(event.thread + std::size_t{1});
    const New given = std::exchange(newest[event.thread], {});
    Live old;
    if (event.kind == Kind::free && live.take(event.block + 1, old)) grow(old, given, number);
    if (event.kind == Kind::reallocate && live.take(event.old_block + 1, old)) {
      old.size = event.size;
      old.grown = 0;
      live.insert(event.block + 1, old);
    } else if (journal::gives_block(event.kind)) {
      const bool known = event.site != journal::no_site;
      live.insert(event.block + 1, {.size = event.size,
                                    .function = known ? recording.labels->speaker(event.site).function : 0,
                                    .grown = 0,
                                    .last = {}});
      newest[event.thread] = {event.block, number};
    }
    ++number;
  });
  std::sort(recording.growths.begin(), recording.growths.end(),
            [](const Growth& a, const Growth& b) { return a.allocation < b.allocation; });
}

}  // namespace

bool Recording::plays_at(std::uint64_t time_ns) const {
  const auto next = std::upper_bound(phases.begin(), phases.end(), time_ns,
                                     [](std::uint64_t wanted, const auto& phase) { return wanted < phase.first; });
  return next != phases.begin() && std::prev(next)->second;
}

bool Recording::is_growth(std::uint32_t event) const {
  const auto found = std::lower_bound(growths.begin(), growths.end(), event,
                                      [](const Growth& one, std::uint32_t wanted) { return one.allocation < wanted; });
  return found != growths.end() && found->allocation == event;
}

const sites::Label& Recording::label_of(std::uint32_t node) const {
  const auto all = labels->of_frame(stacks->nodes()[node].frame);
  const auto found =
      std::find_if(all.begin(), all.end(), [this](const auto& one) { return !labels->wraps(one.function); });
  return found == all.end() ? all.front() : *found;
}

Recording load(const std::string& path, const journal::Progress& progress) {
  const auto status = std::filesystem::status(path);
  if (exists(status) && !is_regular_file(status) && !is_directory(status)) {
    throw Error(path + " can be read only once, and advice needs several passes; save it as a file first");
  }
  const auto source = journal::open(path);
  Recording recording;
  recording.path = path;
  journal::FrameMarks marks;
  bool has_sites = false;
  std::vector<std::pair<std::uint64_t, std::uint32_t>> phases;  // begin, name
  journal::for_each_event(*source, progress, [&](const Event& event) {
    marks.add(event);
    if (journal::gives_block(event.kind)) ++recording.allocations;
    has_sites |= event.site != journal::no_site;
    if (event.kind == Kind::phase_mark) phases.emplace_back(event.time_ns, event.tag);
    ++recording.events;
    recording.duration_ns = event.time_ns;
  });
  if (recording.events > most_events) {
    throw Error(path + " has more than " + std::to_string(most_events) + " events; 'blockyard cut' makes a part of it");
  }
  if (recording.allocations == 0) throw Error(path + " holds no allocation");
  if (!has_sites) {
    throw Error(path + " has no call stacks; record the program again with 'blockyard record', without --no-stacks");
  }
  std::tie(recording.frame_thread, recording.marks) = marks.most();
  recording.header = source->header();
  for (const auto& [begin_ns, name] : phases) {
    recording.phases.emplace_back(begin_ns, recording.header.names[name] == "play");
    recording.names_play |= recording.phases.back().second;
  }
  recording.notes.assign(source->notes().begin(), source->notes().end());
  recording.stacks = std::make_unique<journal::Stacks>();
  journal::copy_tables(source->stacks(), *recording.stacks);
  journal::copy_names(source->stacks(), *recording.stacks);
  recording.labels = std::make_unique<sites::Labels>(*recording.stacks, false);
  const auto nodes = recording.stacks->nodes();
  recording.depth.resize(nodes.size());
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    recording.depth[i] = nodes[i].parent == journal::no_node ? 0 : recording.depth[nodes[i].parent] + 1;
  }
  find_starts(recording);
  find_own(recording);
  find_growths(recording, {});
  if (recording.has_frames()) find_frame_functions(recording);
  return recording;
}

std::uint32_t Words::intern(Word word) {
  std::string key = word.function + '\0' + word.module;
  if (word.is_place) key += '\0' + std::to_string(word.place) + (word.is_address ? "x" : "");
  const auto [place, is_new] = index_.try_emplace(std::move(key), size());
  if (is_new) words_.push_back(std::move(word));
  return place->second;
}

std::uint32_t Contexts::function_word(const sites::Label& label) {
  const auto [place, is_new] = functions_.try_emplace(std::uint64_t{label.function} << 32 | label.module, 0);
  if (is_new) {
    const sites::Labels& labels = *recording_.labels;
    place->second = words_.intern({.function = labels.text(label.function),
                                   .file = labels.text(label.file),
                                   .module = labels.text(label.module),
                                   .is_foreign = recording_.foreign[label.function]});
  }
  return place->second;
}

std::uint32_t Contexts::asker_word(std::uint32_t function) {
  const auto [place, is_new] = askers_.try_emplace(function, 0);
  if (is_new) {
    place->second = words_.intern(
        {.function = recording_.labels->text(function), .file = {}, .module = {}, .is_place = true, .is_asker = true});
  }
  return place->second;
}

std::uint32_t Contexts::place_word(const sites::Label& label, std::uint32_t frame) {
  const std::uint64_t key = label.line != 0 ? std::uint64_t{label.function} << 32 | label.line
                                            : std::uint64_t{label.function} << 32 | 1U << 31 | frame;
  const auto [place, is_new] = places_.try_emplace(key, 0);
  if (is_new) {
    const sites::Labels& labels = *recording_.labels;
    place->second = words_.intern({.function = labels.text(label.function),
                                   .file = labels.text(label.file),
                                   .module = labels.text(label.module),
                                   .place = label.line != 0 ? label.line : recording_.stacks->frames()[frame].address,
                                   .is_place = true,
                                   .is_address = label.line == 0});
  }
  return place->second;
}

Context Contexts::of(std::uint32_t node) {
  Context context;
  const auto nodes = recording_.stacks->nodes();
  const sites::Labels& labels = *recording_.labels;
  std::size_t functions = 0;
  const sites::Label* innermost = nullptr;
  std::uint32_t innermost_frame = 0;
  bool wants_own = recording_.own[node] != journal::no_node;
  std::uint32_t asker = 0;  // the outermost that only hands the block on
  for (; node != journal::no_node && (functions < most_functions || wants_own); node = nodes[node].parent) {
    const std::uint32_t frame = nodes[node].frame;
    if (recording_.stacks->frames()[frame].module == journal::end_marker) break;
    for (const sites::Label& label : labels.of_frame(frame)) {
      if (innermost == nullptr) std::tie(innermost, innermost_frame) = std::pair(&label, frame);
      if (labels.wraps(label.function) && functions == 0) asker = label.function;
      if (labels.wraps(label.function) || (functions >= most_functions && !wants_own)) continue;
      wants_own = wants_own && recording_.foreign[label.function];
      context.push_back(function_word(label));
      context.push_back(place_word(label, frame));
      if (functions++ == 0 && asker != 0) context.push_back(asker_word(asker));
    }
  }
  if (context.empty() && innermost != nullptr) {
    context = {function_word(*innermost), place_word(*innermost, innermost_frame)};
  }
  return context;
}

}  // namespace blockyard::advise
