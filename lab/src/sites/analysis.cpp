#include "sites/analysis.hpp"

#include <algorithm>
#include <filesystem>
#include <map>
#include <regex>
#include <tuple>

#include "journal/flat_map.hpp"
#include "journal/frame_marks.hpp"
#include "sites/shared_function.hpp"

namespace blockyard::sites {
namespace {

using journal::Error;
using journal::Event;
using journal::Kind;

constexpr std::uint32_t no_frame = 0;  // before the first mark
constexpr std::uint32_t no_thread = journal::FrameMarks::no_thread;

/// Gives each stack its site.
class Grouping {
 public:
  Grouping(By by, Sites& result) : by_(by), result_(result), labels_(*result.labels) {
    result.sites.emplace_back();  // site 0: no stack, or no tag
    if (by == By::tag) {
      tag_sites_.resize(result.header().names.size());
      return;
    }
    std::map<std::tuple<std::uint32_t, std::uint32_t, std::uint32_t, std::uint32_t>, std::uint32_t> known;
    const auto count = static_cast<std::uint32_t>(result.stacks().nodes().size());
    node_sites_.resize(count);
    if (by == By::stack) return;
    for (std::uint32_t node = 0; node < count; ++node) {
      const Label& label = labels_.speaker(node);
      const auto key = by == By::module ? std::tuple(label.module, 0U, 0U, 0U)
                       : by == By::line ? std::tuple(label.function, label.module, label.file, label.line)
                                        : std::tuple(label.function, label.module, 0U, 0U);
      const auto [place, is_new] = known.try_emplace(key, static_cast<std::uint32_t>(groups_++));
      (void)is_new;
      node_sites_[node] = place->second;
    }
  }

  std::uint32_t of(const Event& event) {
    if (by_ == By::tag) {
      if (event.tag == 0) return 0;
      return site(tag_sites_[event.tag], event.site, event.tag);
    }
    if (event.site == journal::no_site) return 0;
    if (by_ == By::stack) return site(node_sites_[event.site], event.site, 0);
    if (group_sites_.empty()) group_sites_.resize(groups_);
    return site(group_sites_[node_sites_[event.site]], event.site, 0);
  }

 private:
  /// Sites are made when an allocation needs them: most stacks are parts of others, or of frees.
  std::uint32_t site(std::uint32_t& place, std::uint32_t node, std::uint32_t label) {
    if (place == 0) {
      place = static_cast<std::uint32_t>(result_.sites.size());
      result_.sites.push_back({node, label, true, {}});
    }
    return place;
  }

  By by_;
  Sites& result_;
  const Labels& labels_;
  std::size_t groups_ = 0;
  std::vector<std::uint32_t> node_sites_;   ///< by node: its group; By::stack: its site
  std::vector<std::uint32_t> group_sites_;  ///< by group: its site
  std::vector<std::uint32_t> tag_sites_;    ///< by tag: its site
};

class Adder {
 public:
  /// Without a frame thread, the first that marks a frame is it, and without marks a frame is a sixtieth of a second.
  Adder(const std::string& path, const Options& options, std::uint32_t frame_thread, Sites& result)
      : path_(path),
        options_(options),
        preamble_(result.header().preamble_events),
        result_(result),
        grouping_(options.by, result),
        shared_(*result.labels),
        frame_thread_(frame_thread),
        frame_(frame_thread == no_thread ? 1 : no_frame) {
    if (!options.through.empty()) select(options.through);
    find_incomplete();
  }

  void prefetch(const Event& event) const { live_.prefetch(ended_block(event) + 1); }

  void add(const Event& event) {
    const bool preamble = events_++ < preamble_;
    has_allocations_ |= gives_block(event.kind);
    has_sites_ |= event.site != journal::no_site;
    has_tags_ |= event.tag != 0 && event.kind != Kind::phase_mark;
    marks_.add(event);
    if (event.time_ns >= options_.to_ns) return;
    counts_ = !preamble && event.time_ns >= options_.from_ns;
    last_ns_ = event.time_ns;
    if (event.kind == Kind::frame_mark) {
      if (frame_thread_ == no_thread) begin_frames(event.thread);
      if (event.thread == frame_thread_) mark();
      return;
    }
    if (frame_thread_ == no_thread) {
      frame_ = static_cast<std::uint32_t>(event.time_ns / journal::default_frame_ns) + 1;
      if (counts_ && first_frame_ == no_frame) first_frame_ = frame_;
    }
    if (takes_block(event.kind)) release(ended_block(event), event);
    if (gives_block(event.kind)) give(event);
  }

  std::uint64_t preamble() const { return preamble_; }
  /// Throws when the journal can't say who allocates.
  void require() const {
    if (!has_allocations_) throw Error(path_ + " holds no allocation");
    if (options_.by == By::tag && !has_tags_) {
      throw Error(path_ + " has no tags; a program sets them with blockyard::tag or by_tag_push while it is recorded");
    }
    if (options_.by != By::tag && !has_sites_) {
      throw Error(path_ + " has no call stacks; record the program again with 'blockyard record', without --no-stacks");
    }
  }

  /// After all events: the thread that marks most frames. Another than frame_thread() is the one to begin with.
  std::uint32_t most_marks() const { return marks_.most().first; }
  std::uint32_t frame_thread() const { return frame_thread_; }
  /// Whether another pass may follow: so far more than one thread marks frames.
  bool may_repeat() const { return marks_.threads() > 1; }

  void conclude() {
    result_.marked_frames = frame_thread_ != no_thread;
    // Between two marks lies a frame; the last one on the clock counts as whole.
    const std::uint32_t end = result_.marked_frames ? last_frame_ : frame_ + 1;
    result_.frame_count = first_frame_ == no_frame ? 0 : end - first_frame_;
    for (std::size_t i = 0; i < result_.sites.size(); ++i) {
      if (i < running_.size()) conclude(result_.sites[i].totals, running_[i], !result_.marked_frames);
    }
    conclude(result_.all, total_, !result_.marked_frames);
    within_.for_each([this](std::uint64_t key, std::uint64_t count) {
      Totals& totals = result_.sites[(key >> 32) - 1].totals;
      const auto function = static_cast<std::uint32_t>(key);
      const std::string& name = result_.labels->text(function);
      if (count < totals.freed_shared || (count == totals.freed_shared && name >= totals.shared)) return;
      totals.freed_shared = count;
      totals.shared = name;
    });
    result_.duration_ns = last_ns_;
  }

 private:
  struct Live {
    std::uint64_t size;
    std::uint32_t site;
    std::uint32_t node;
    std::uint32_t frame;
    bool counts;  ///< allocated between `from` and `to`
  };
  /// What changes with a site's blocks and frames. The figures at the peak are those of the last change before it.
  struct Running {
    std::uint64_t blocks = 0;
    std::uint64_t bytes = 0;
    std::uint64_t peak_blocks = 0;
    std::uint64_t peak_bytes = 0;
    std::uint64_t peak = 0;               ///< which peak they belong to
    std::uint64_t frame_allocations = 0;  ///< of the frame that has not ended
    std::uint64_t frame_bytes = 0;
    std::uint32_t frame = no_frame;
  };

  /// What was counted by frames before the first mark was by the clock's.
  void begin_frames(std::uint32_t thread) {
    frame_thread_ = thread;
    first_frame_ = no_frame;
    for (Running& running : running_) forget_frames(running);
    for (Site& site : result_.sites) forget_frames(site.totals);
    forget_frames(total_);
    forget_frames(result_.all);
  }
  static void forget_frames(Running& running) {
    running.frame_allocations = running.frame_bytes = 0;
    running.frame = no_frame;
  }
  static void forget_frames(Totals& totals) {
    totals.frame_allocations = totals.frame_bytes = totals.worst_frame = totals.frames = totals.freed_same_frame = 0;
  }

  void mark() {
    ++frame_;
    if (!counts_) return;
    if (first_frame_ == no_frame) first_frame_ = frame_;
    last_frame_ = frame_;
  }

  void select(const std::string& pattern) {
    const std::regex expression = expression_of(pattern);
    const Labels& labels = *result_.labels;
    std::vector<bool> matches(labels.texts());
    for (std::uint32_t i = 0; i < labels.texts(); ++i) matches[i] = std::regex_search(labels.text(i), expression);
    const auto nodes = result_.stacks().nodes();
    selected_.resize(nodes.size());
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      selected_[i] = nodes[i].parent != journal::no_node && selected_[nodes[i].parent];
      for (const Label& label : labels.of_frame(nodes[i].frame)) {
        if (matches[label.function]) selected_[i] = true;
      }
    }
    all_ = false;
  }
  void find_incomplete() {
    const auto nodes = result_.stacks().nodes();
    incomplete_.resize(nodes.size());
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      incomplete_[i] = nodes[i].parent == journal::no_node
                           ? result_.stacks().frames()[nodes[i].frame].module == journal::end_marker
                           : incomplete_[nodes[i].parent];
    }
  }
  bool is_selected(const Event& event) const {
    return all_ || (event.site != journal::no_site && selected_[event.site]);
  }

  /// Before a site's memory changes: what it held at the last peak is what it holds now.
  void remember(Running& running) const {
    if (running.peak == peak_) return;
    running.peak = peak_;
    running.peak_blocks = running.blocks;
    running.peak_bytes = running.bytes;
  }

  static void end_frame(Totals& totals, Running& running) {
    totals.frame_allocations += running.frame_allocations;
    totals.frame_bytes += running.frame_bytes;
    totals.worst_frame = std::max(totals.worst_frame, running.frame_allocations);
    if (running.frame_allocations != 0) ++totals.frames;
    running.frame_allocations = running.frame_bytes = 0;
  }

  void add_to_frame(Totals& totals, Running& running, std::uint64_t size) const {
    if (running.frame != frame_) end_frame(totals, running);
    running.frame = frame_;
    ++running.frame_allocations;
    running.frame_bytes += size;
  }

  void give(const Event& event) {
    if (!is_selected(event)) return;
    const std::uint32_t site = grouping_.of(event);
    if (site >= running_.size()) running_.resize(site + 1);
    Running& running = running_[site];
    live_.insert(event.block + 1, {event.size, site, event.site, frame_, counts_});
    remember(running);
    ++running.blocks;
    running.bytes += event.size;
    ++total_.blocks;
    total_.bytes += event.size;
    if (total_.bytes > total_.peak_bytes && event.time_ns >= options_.from_ns) {
      ++peak_;
      total_.peak_bytes = total_.bytes;
      total_.peak_blocks = total_.blocks;
      result_.peak_at_ns = event.time_ns;
    }
    if (!counts_) return;
    Totals& totals = result_.sites[site].totals;
    for (Totals* one : {&totals, &result_.all}) {
      ++one->allocations;
      one->bytes += event.size;
    }
    if (event.site == journal::no_site) {
      ++result_.without_stack;
    } else if (incomplete_[event.site]) {
      ++result_.incomplete_stacks;
    }
    const bool in_frame =
        frame_thread_ == no_thread || (event.thread == frame_thread_ && frame_ != no_frame && frame_ >= first_frame_);
    if (in_frame && first_frame_ != no_frame) {
      add_to_frame(totals, running, event.size);
      add_to_frame(result_.all, total_, event.size);
    }
  }

  void release(std::uint64_t block, const Event& event) {
    Live gone{};
    if (!live_.take(block + 1, gone)) {
      if (!all_) return;  // a block of a stack that was not selected
      throw Error(path_ + ", event " + std::to_string(events_ - 1) + ": " + journal::freed_but_not_live(block));
    }
    Running& running = running_[gone.site];
    remember(running);
    --running.blocks;
    running.bytes -= gone.size;
    --total_.blocks;
    total_.bytes -= gone.size;
    if (!counts_ || !gone.counts) return;
    const bool same_frame = gone.frame == frame_ && frame_ != no_frame;
    for (Totals* one : {&result_.sites[gone.site].totals, &result_.all}) {
      ++one->freed;
      if (same_frame) ++one->freed_same_frame;
    }
    if (gone.node == journal::no_site || event.site == journal::no_site) return;
    const std::uint32_t function = shared_.of(gone.node, event.site);
    if (function == SharedFunction::none) return;
    const std::uint64_t key = (std::uint64_t{gone.site} + 1) << 32 | function;
    if (std::uint64_t* count = within_.find(key)) {
      ++*count;
    } else {
      within_.insert(key, 1);
    }
  }

  void conclude(Totals& totals, Running& running, bool last_frame_is_whole) const {
    // A frame that was not marked as over is none; the clock's last one is.
    if (running.frame != frame_ || last_frame_is_whole) end_frame(totals, running);
    if (&running != &total_) remember(running);
    totals.peak_blocks = running.peak_blocks;
    totals.peak_bytes = running.peak_bytes;
    totals.end_blocks = running.blocks;
    totals.end_bytes = running.bytes;
  }

  const std::string& path_;
  const Options& options_;
  std::uint64_t preamble_;
  Sites& result_;
  Grouping grouping_;
  SharedFunction shared_;
  journal::FlatMap<Live> live_{1U << 16};   ///< block + 1
  journal::FlatMap<std::uint64_t> within_;  ///< site + 1 and function -> blocks
  std::vector<Running> running_;            ///< by site
  Running total_;
  std::uint64_t peak_ = 0;
  std::uint64_t events_ = 0;
  std::uint64_t last_ns_ = 0;
  std::uint32_t frame_thread_;
  std::uint32_t frame_;  ///< the one that goes on, from 1
  journal::FrameMarks marks_;
  bool has_allocations_ = false;
  bool has_sites_ = false;
  bool has_tags_ = false;
  std::uint32_t first_frame_ = no_frame;
  std::uint32_t last_frame_ = no_frame;
  bool counts_ = false;
  bool all_ = true;               ///< every stack is selected
  std::vector<bool> selected_;    ///< by node
  std::vector<bool> incomplete_;  ///< by node: its root is no function
};

/// Progress of several passes as one, which never goes back.
class Passes {
 public:
  explicit Passes(const journal::Progress& progress) : progress_(progress) {}

  void begin() { begun_ = reached_; }
  void report(double read, bool another_follows) {
    if (!progress_) return;
    reached_ = std::max(reached_, begun_ + (1 - begun_) * read * (another_follows ? 0.5 : 1));
    progress_(reached_);
  }

 private:
  const journal::Progress& progress_;
  double begun_ = 0;  ///< where the pass began
  double reached_ = 0;
};

void add_all(journal::Source& source, Adder& adder, Passes& passes, bool is_last, journal::FactsGatherer* facts) {
  passes.begin();
  std::uint64_t events = 0;
  journal::for_each_event(
      source, [&](double read) { passes.report(read, !is_last && adder.may_repeat()); },
      [&](const Event& event) {
        adder.add(event);
        if (facts != nullptr) facts->add(event, events++ < adder.preamble());
      },
      [&](const Event& event) {
        adder.prefetch(event);
        if (facts != nullptr) facts->prefetch(event);
      });
}

}  // namespace

Sites find_sites(const std::string& path, const Options& options, const journal::Progress& progress,
                 journal::FactsGatherer* facts) {
  const auto status = std::filesystem::status(path);
  if (exists(status) && !is_regular_file(status) && !is_directory(status)) {
    throw Error(path + " can be read only once, and sites may need two passes; save it as a file first");
  }
  if (options.to_ns <= options.from_ns) throw Error("--to must be later than --from");
  Sites result;
  result.source = journal::open(path);
  std::unique_ptr<journal::Source> again;  // a pass after the first
  Passes passes(progress);
  if (!result.source->is_complete()) {
    journal::for_each_event(
        *result.source, [&](double read) { passes.report(read, true); }, [](const Event&) {});
    again = journal::open(path);
  }
  result.labels =
      std::make_unique<Labels>(result.stacks(), options.show_wrappers, options.skip, options.by == By::line);
  for (std::uint32_t frame_thread = no_thread;;) {
    Adder adder(path, options, frame_thread, result);
    const bool is_first = frame_thread == no_thread;
    add_all(again ? *again : *result.source, adder, passes, !is_first, is_first ? facts : nullptr);
    if (facts == nullptr) adder.require();
    if (adder.most_marks() == adder.frame_thread()) {
      adder.conclude();
      return result;
    }
    frame_thread = adder.most_marks();
    again = journal::open(path);
    Sites fresh;
    fresh.source = std::move(result.source);
    fresh.labels = std::move(result.labels);
    result = std::move(fresh);
  }
}

}  // namespace blockyard::sites
