#include "journal/facts.hpp"

#include <algorithm>

#include "journal/flat_map.hpp"

namespace blockyard::journal {

namespace counting {

struct Live {
  std::uint64_t size;
  std::uint64_t time_ns;
  std::uint32_t thread;
};

/// Counts events and bytes by frame: for each thread by its marks, and by the clock for journals without marks, because
/// which thread marks most is known only at the end.
class FrameCounter {
 public:
  void count(const Event& event) {
    if (event.kind == Kind::frame_mark) {
      if (event.thread >= marked_.size()) marked_.resize(event.thread + 1);
      auto& frames = marked_[event.thread];
      if (frames.empty()) {
        frames.push_back({0, event.time_ns, events_, bytes_, allocations_});
      } else {
        frames.push_back({frames.back().end_ns, event.time_ns, events_, bytes_, allocations_});
      }
      return;
    }
    const std::uint64_t bytes = gives_block(event.kind) ? event.size : 0;
    const std::uint64_t weight = event.kind == Kind::phase_mark ? 0 : event.kind == Kind::reallocate ? 2 : 1;
    events_ += weight;
    bytes_ += bytes;
    allocations_ += gives_block(event.kind) ? 1u : 0u;
    const std::uint64_t begin = event.time_ns - event.time_ns % default_frame_ns;
    if (clocked_.empty() || clocked_.back().begin_ns != begin) clocked_.push_back({begin, begin + default_frame_ns});
    FrameFacts& frame = clocked_.back();
    frame.events += weight;
    frame.bytes += bytes;
    frame.allocations += gives_block(event.kind) ? 1u : 0u;
  }

  void conclude(Facts& facts) {
    const auto most = std::max_element(marked_.begin(), marked_.end(),
                                       [](const auto& a, const auto& b) { return a.size() < b.size(); });
    if (most == marked_.end() || most->empty()) {
      facts.frames = std::move(clocked_);
      if (!facts.frames.empty()) facts.frame_count = facts.frames.back().begin_ns / default_frame_ns + 1;
      return;
    }
    facts.marked_frames = true;
    facts.frame_thread = static_cast<std::uint32_t>(most - marked_.begin());
    facts.frames = std::move(*most);
    facts.frame_count = facts.frames.size();
    // So far they hold running totals.
    for (std::size_t i = facts.frames.size(); i-- > 1;) {
      facts.frames[i].events -= facts.frames[i - 1].events;
      facts.frames[i].bytes -= facts.frames[i - 1].bytes;
      facts.frames[i].allocations -= facts.frames[i - 1].allocations;
    }
  }

 private:
  std::uint64_t events_ = 0;
  std::uint64_t bytes_ = 0;
  std::uint64_t allocations_ = 0;
  std::vector<std::vector<FrameFacts>> marked_;  ///< by thread; all but the times are running totals
  std::vector<FrameFacts> clocked_;
};

class StackCounter {
 public:
  void count(const Event& event) {
    if (event.tag != 0 && event.kind != Kind::phase_mark) ++facts_.tagged_events;
    if (event.site == no_site) return;
    ++facts_.events;
    if (events_.size() <= event.site) events_.resize(std::size_t{event.site} + 1);
    ++events_[event.site];
  }

  StackFacts conclude(const Stacks& stacks) {
    const auto frames = stacks.frames();
    std::vector<bool> has_frames(stacks.modules().size());
    std::vector<bool> has_names(stacks.modules().size());
    for (std::uint32_t i = 0; i < frames.size(); ++i) {
      const std::uint32_t module = frames[i].module;
      if (module != end_marker) ++facts_.addresses;
      if (module >= has_frames.size()) continue;
      has_frames[module] = true;
      if (stacks.is_named(i)) has_names[module] = true;
    }
    facts_.named_addresses = stacks.named_frames();
    facts_.modules = stacks.modules().size();
    for (std::size_t i = 0; i < has_frames.size(); ++i) {
      if (has_frames[i] && !has_names[i]) ++facts_.modules_without_names;
    }
    std::vector<std::uint32_t> root_frames(stacks.nodes().size());
    for (std::size_t i = 0; i < root_frames.size(); ++i) {
      const Node& node = stacks.nodes()[i];
      root_frames[i] = node.parent == no_node ? node.frame : root_frames[node.parent];
      if (i >= events_.size() || events_[i] == 0) continue;
      ++facts_.sites;
      const Frame& root = frames[root_frames[i]];
      if (root.module == end_marker) facts_.incomplete_events[stack_end_text(root.address)] += events_[i];
    }
    return facts_;
  }

 private:
  StackFacts facts_;
  std::vector<std::uint64_t> events_;  ///< by site
};

}  // namespace counting

class FactsGatherer::Counts {
 public:
  Counts(const std::string& path, Facts& facts) : path_(path), facts_(facts) {}

  void prefetch(const Event& event) const { live_.prefetch(ended_block(event) + 1); }

  void add(const Event& event, bool preamble) {
    ++facts_.events;
    facts_.duration_ns = event.time_ns;
    stacks_.count(event);
    if (event.thread >= facts_.threads.size()) facts_.threads.resize(event.thread + 1);
    if (!preamble) {
      ++facts_.kinds[static_cast<std::size_t>(event.kind)];
      frames_.count(event);
    }
    if (event.kind == Kind::frame_mark) ++facts_.threads[event.thread].frame_marks;
    if (takes_block(event.kind)) release(ended_block(event), event);
    if (gives_block(event.kind)) give(event, preamble);
  }

  void conclude(const Stacks& stacks) {
    facts_.stacks = stacks_.conclude(stacks);
    facts_.live_blocks = live_.size();
    facts_.live_bytes = live_bytes_;
    frames_.conclude(facts_);
    sizes_.for_each([&](std::uint64_t key, std::uint64_t times) { facts_.sizes.emplace_back(key - 1, times); });
    std::sort(facts_.sizes.begin(), facts_.sizes.end());
  }

 private:
  void give(const Event& event, bool preamble) {
    live_.insert(event.block + 1, {event.size, event.time_ns, event.thread});
    live_bytes_ += event.size;
    facts_.max_live_blocks = std::max<std::uint64_t>(facts_.max_live_blocks, live_.size());
    if (live_bytes_ > facts_.max_live_bytes) {
      facts_.max_live_bytes = live_bytes_;
      facts_.max_live_bytes_at_ns = event.time_ns;
    }
    ThreadFacts& thread = facts_.threads[event.thread];
    if (preamble) {
      ++facts_.preamble_blocks;
      facts_.preamble_bytes += event.size;
      if (event.size == 0) ++facts_.preamble_zero_sizes;
      ++thread.preamble;
      return;
    }
    ++facts_.allocations;
    facts_.total_bytes += event.size;
    ++thread.allocations;
    thread.bytes += event.size;
    if (std::uint64_t* const times = sizes_.find(event.size + 1)) {
      ++*times;
    } else {
      sizes_.insert(event.size + 1, 1);
    }
  }

  void release(std::uint64_t block, const Event& event) {
    counting::Live gone{};
    if (!live_.take(block + 1, gone)) {
      throw Error(path_ + ", event " + std::to_string(facts_.events - 1) + ": " + freed_but_not_live(block));
    }
    live_bytes_ -= gone.size;
    ThreadFacts& thread = facts_.threads[event.thread];
    ++facts_.frees;
    ++thread.frees;
    if (gone.thread != event.thread) {
      ++facts_.remote_frees;
      ++thread.remote_frees;
    }
    const std::uint64_t lifetime = event.time_ns - gone.time_ns;
    const auto bound = std::upper_bound(lifetime_bounds_ns.begin(), lifetime_bounds_ns.end(), lifetime);
    ++facts_.lifetimes[static_cast<std::size_t>(bound - lifetime_bounds_ns.begin())];
  }

  const std::string& path_;
  Facts& facts_;
  FlatMap<counting::Live> live_;  ///< block + 1
  std::uint64_t live_bytes_ = 0;
  counting::FrameCounter frames_;
  counting::StackCounter stacks_;
  FlatMap<std::uint64_t> sizes_;  ///< size + 1 -> allocations
};

FactsGatherer::FactsGatherer(std::string path)
    : path_(std::move(path)), counts_(std::make_unique<Counts>(path_, facts_)) {}
FactsGatherer::~FactsGatherer() = default;

void FactsGatherer::prefetch(const Event& event) const { counts_->prefetch(event); }
void FactsGatherer::add(const Event& event, bool preamble) { counts_->add(event, preamble); }

Facts FactsGatherer::conclude(const Source& source) {
  counts_->conclude(source.stacks());
  facts_.header = source.header();
  facts_.threads.resize(facts_.header.threads.size());
  facts_.form = source.form();
  facts_.file_bytes = source.bytes_total();
  facts_.notes.assign(source.notes().begin(), source.notes().end());
  return std::move(facts_);
}

Facts gather_facts(const std::string& path, const Progress& progress) {
  const auto source = open(path);
  FactsGatherer gatherer(path);
  std::uint64_t events = 0;
  const Header& header = source->header();  // a text's grows while it is read
  for_each_event(
      *source, progress, [&](const Event& event) { gatherer.add(event, events++ < header.preamble_events); },
      [&](const Event& event) { gatherer.prefetch(event); });
  return gatherer.conclude(*source);
}

}  // namespace blockyard::journal
