#include "sites/event_stacks.hpp"

#include <array>
#include <cstring>
#include <fstream>
#include <iterator>
#include <limits>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "journal/event.hpp"
#include "journal/flat_map.hpp"
#include "journal/output_file.hpp"
#include "journal/reader.hpp"
#include "journal/stack_copy.hpp"
#include "sites/labels.hpp"

namespace blockyard::sites {
namespace {

using journal::Error;
using journal::Event;
using journal::Kind;

/// What a stack's blocks hold. The figures at the peak are those of its last change before the peak.
struct Held {
  std::uint64_t blocks = 0;
  std::uint64_t bytes = 0;
  std::uint64_t peak_blocks = 0;
  std::uint64_t peak_bytes = 0;
  std::uint64_t peak = 0;  ///< which peak they belong to
};

class Follower {
 public:
  Follower(const std::string& path, const journal::Stacks& all, journal::Stacks& used, const Stretch& stretch)
      : path_(path), stretch_(stretch), subset_(all, used, 0) {}

  void prefetch(const Event& event) const { live_.prefetch(ended_block(event) + 1); }

  /// `preamble` events at the journal's beginning are measured by no replay. False behind the stretch's end.
  bool add(const Event& event, std::uint64_t preamble) {
    if (by_event_.size() >= preamble && event.time_ns >= stretch_.from_ns) {
      if (event.time_ns >= stretch_.to_ns) return false;
      if (!measuring_) begin_stretch();
    }
    const std::uint32_t node = measuring_ ? used_node(event.site) : event.site;
    if (takes_block(event.kind)) release(ended_block(event));
    if (gives_block(event.kind)) give(event, node);
    const bool has_stack = gives_block(event.kind) || takes_block(event.kind);
    by_event_.push_back(measuring_ && has_stack ? node : journal::no_node);
    return true;
  }

  void conclude() {
    subset_.finish();
    for (Held& one : held_) remember(one);
  }

  std::span<const std::uint32_t> by_event() const { return by_event_; }
  std::span<const Held> held() const { return held_; }

 private:
  struct Live {
    std::uint64_t size;
    std::uint32_t node;   ///< of the journal before the stretch, then of those that are used
    std::uint32_t event;  ///< that gave the block
  };

  std::uint32_t used_node(std::uint32_t site) {
    const std::uint32_t node = subset_.node(site);
    if (node != journal::no_node && node >= held_.size()) held_.resize(node + 1);
    return node;
  }

  void begin_stretch() {
    measuring_ = true;
    journal::FlatMap<Live> alive;
    live_.for_each([&](std::uint64_t key, Live block) {
      block.node = used_node(block.node);
      by_event_[block.event] = block.node;
      alive.insert(key, block);
      hold(block);
    });
    live_ = std::move(alive);
    peak_bytes_ = bytes_;
    ++peak_;
  }

  void remember(Held& one) const {
    if (one.peak == peak_) return;
    one.peak = peak_;
    one.peak_blocks = one.blocks;
    one.peak_bytes = one.bytes;
  }

  void hold(const Live& block) {
    bytes_ += block.size;
    if (block.node == journal::no_node) return;
    Held& one = held_[block.node];
    remember(one);
    ++one.blocks;
    one.bytes += block.size;
  }

  void give(const Event& event, std::uint32_t node) {
    const Live block{event.size, node, static_cast<std::uint32_t>(by_event_.size())};
    live_.insert(event.block + 1, block);
    if (!measuring_) return;
    hold(block);
    if (bytes_ <= peak_bytes_) return;
    peak_bytes_ = bytes_;
    ++peak_;
  }

  void release(std::uint64_t number) {
    Live block{};
    if (!live_.take(number + 1, block)) {
      throw Error(path_ + ", event " + std::to_string(by_event_.size()) + ": " + journal::freed_but_not_live(number));
    }
    if (!measuring_) return;
    bytes_ -= block.size;
    if (block.node == journal::no_node) return;
    Held& one = held_[block.node];
    remember(one);
    --one.blocks;
    one.bytes -= block.size;
  }

  const std::string& path_;
  const Stretch& stretch_;
  journal::StackSubset subset_;
  journal::FlatMap<Live> live_{1U << 16};  ///< block + 1
  std::vector<std::uint32_t> by_event_;
  std::vector<Held> held_;  ///< by node
  std::uint64_t bytes_ = 0;
  std::uint64_t peak_bytes_ = 0;
  std::uint64_t peak_ = 0;
  bool measuring_ = false;
};

template <typename T>
void put(journal::ByteSink& out, std::span<const T> values) {
  out.write({reinterpret_cast<const char*>(values.data()), values.size_bytes()});
}

void put(journal::ByteSink& out, std::uint64_t value) { put(out, std::span<const std::uint64_t>(&value, 1)); }

template <typename T, typename Value>
void put_each(journal::ByteSink& out, std::size_t count, Value value_of) {
  std::vector<T> values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = static_cast<T>(value_of(static_cast<std::uint32_t>(i)));
  put(out, std::span<const T>(values));
}

void write(journal::ByteSink& out, const journal::Stacks& stacks, const Follower& found) {
  const Labels labels(stacks, false);
  const auto nodes = stacks.nodes();
  const std::size_t frames = stacks.frames().size();
  std::uint64_t text_bytes = 0;
  for (std::uint32_t i = 0; i < labels.texts(); ++i) text_bytes += labels.text(i).size();
  if (text_bytes > std::numeric_limits<std::uint32_t>::max()) throw Error("the names of its functions exceed 4 GiB");

  out.write({event_stacks_magic, sizeof event_stacks_magic});
  put(out, event_stacks_version | std::uint64_t{stacks.has_names() ? event_stacks_named : 0} << 32);
  const std::uint64_t counts[] = {found.by_event().size(), nodes.size(),   frames,
                                  labels.all().size(),     labels.texts(), text_bytes};
  put(out, std::span<const std::uint64_t>(counts));
  const auto put_held = [&](auto member) {
    put_each<std::uint64_t>(out, nodes.size(),
                            [&](std::uint32_t i) { return i < found.held().size() ? found.held()[i].*member : 0; });
  };
  put_held(&Held::peak_bytes);
  put_held(&Held::peak_blocks);
  put_held(&Held::bytes);
  put_held(&Held::blocks);
  put(out, found.by_event());
  put_each<std::uint32_t>(out, nodes.size(), [&](std::uint32_t i) { return nodes[i].parent; });
  put_each<std::uint32_t>(out, nodes.size(), [&](std::uint32_t i) { return nodes[i].frame; });
  put_each<std::uint32_t>(out, nodes.size(), [&](std::uint32_t i) { return labels.speaker_place(i); });
  put_each<std::uint32_t>(out, frames + 1, [&](std::uint32_t i) { return labels.first_place(i); });
  static_assert(sizeof(Label) == 4 * sizeof(std::uint32_t));
  put(out, labels.all());
  std::uint32_t end = 0;
  put_each<std::uint32_t>(out, labels.texts(),
                          [&](std::uint32_t i) { return end += static_cast<std::uint32_t>(labels.text(i).size()); });
  put_each<char>(out, labels.texts(), [&](std::uint32_t i) { return labels.wraps(i); });
  for (std::uint32_t i = 0; i < labels.texts(); ++i) out.write(labels.text(i));
  out.finish();
}

}  // namespace

bool write_event_stacks(const std::string& path, const Stretch& stretch, const std::string& output,
                        const journal::Progress& progress) {
  if (stretch.to_ns <= stretch.from_ns) throw Error("--to must be later than --from");
  const auto source = journal::open(path);
  journal::Stacks used;
  Follower found(path, source->stacks(), used, stretch);
  journal::for_each_event(
      *source, progress, [&](const Event& event) { return found.add(event, source->header().preamble_events); },
      [&](const Event& event) { found.prefetch(event); });
  found.conclude();
  if (used.nodes().empty()) return false;
  journal::OutputFile file(output, path, true);
  const auto sink = journal::ByteSink::create(file.temporary(), output);
  write(*sink, used, found);
  file.commit();
  return true;
}

std::vector<std::uint32_t> read_speakers(const std::string& file, const std::string& skip) {
  std::ifstream in(file, std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(in), {}};
  std::size_t place = sizeof event_stacks_magic + sizeof(std::uint64_t);
  const auto take = [&]<typename T>(std::vector<T> values) {
    const std::size_t size = values.size() * sizeof(T);
    if (place + size > bytes.size()) throw Error(file + " is no file of call stacks, or was cut");
    std::memcpy(values.data(), bytes.data() + place, size);
    place += size;
    return values;
  };
  const auto numbers = [&](std::uint64_t count) { return take(std::vector<std::uint32_t>(count)); };
  const auto counts = take(std::vector<std::uint64_t>(6));
  const auto [events, nodes, frames, label_count, texts] =
      std::array{counts[0], counts[1], counts[2], counts[3], counts[4]};
  place += nodes * 4 * sizeof(std::uint64_t) + events * sizeof(std::uint32_t);
  const auto parent = numbers(nodes);
  const auto frame = numbers(nodes);
  numbers(nodes);  // who speaks without `skip`
  const auto first = numbers(frames + 1);
  const auto labels = take(std::vector<Label>(label_count));
  const auto ends = numbers(texts);
  auto silent = take(std::vector<char>(texts));
  const std::regex expression = expression_of(skip);
  std::uint32_t incomplete = journal::no_node;
  for (std::uint32_t i = 0, begin = 0; i < texts; begin = ends[i++]) {
    const std::string text = bytes.substr(place + begin, ends[i] - begin);
    if (text == incomplete_module) incomplete = i;
    if (std::regex_search(text, expression)) silent[i] = 1;
  }
  return choose_speakers(
      nodes, [&](std::uint32_t node) { return parent[node]; }, [&](std::uint32_t node) { return frame[node]; },
      [&](std::uint32_t of) { return first[of]; },
      [&](std::uint32_t at) { return labels[at].module == incomplete || silent[labels[at].function] != 0; });
}

}  // namespace blockyard::sites
