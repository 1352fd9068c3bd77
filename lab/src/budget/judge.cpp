#include "budget/judge.hpp"

#include <algorithm>
#include <deque>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "journal/event.hpp"
#include "journal/flat_map.hpp"
#include "journal/frame_marks.hpp"
#include "journal/reader.hpp"
#include "sites/labels.hpp"

namespace blockyard::budget {
namespace {

using journal::Event;
using journal::Json;
using journal::Kind;

constexpr std::uint64_t second_ns = 1'000'000'000;
constexpr std::size_t most_sites = 10;

std::string file_name(const std::string& path) { return path.substr(path.rfind('/') + 1); }

/// Which stacks have a function or a module that a pattern fits. Each node is looked at once.
class StackFilter {
 public:
  StackFilter(const sites::Labels& labels, std::string pattern) : labels_(labels), pattern_(std::move(pattern)) {}

  bool fits(std::uint32_t node) {
    if (node == journal::no_node) return false;
    if (node >= known_.size()) known_.resize(labels_.stacks().nodes().size());
    // Callers come before what they call, so the way up ends; without recursion, for stacks are deep.
    path_.clear();
    bool found = false;
    for (; node != journal::no_node; node = labels_.stacks().nodes()[node].parent) {
      if (known_[node] != unknown) {
        found = known_[node] == fitting;
        break;
      }
      path_.push_back(node);
    }
    for (auto at = path_.rbegin(); at != path_.rend(); ++at) {
      found = found || frame_fits(labels_.stacks().nodes()[*at].frame);
      known_[*at] = found ? fitting : other;
    }
    return found;
  }

 private:
  enum Known : std::uint8_t { unknown, other, fitting };

  bool frame_fits(std::uint32_t frame) const {
    const auto functions = labels_.of_frame(frame);
    return std::any_of(functions.begin(), functions.end(), [&](const sites::Label& one) {
      return budget::fits(pattern_, labels_.text(one.function)) ||
             budget::fits(pattern_, file_name(labels_.text(one.module)));
    });
  }

  const sites::Labels& labels_;
  std::string pattern_;
  std::vector<Known> known_;
  std::vector<std::uint32_t> path_;
};

/// What exceeded a limit.
struct Violation {
  std::uint64_t time_ns = 0;
  std::uint64_t frame = 0;  ///< counted from 1; 0: before the first
  std::uint32_t thread = 0;
  std::uint32_t node = journal::no_node;
  std::uint64_t size = 0;
  Kind kind = Kind::allocate;
  std::uint32_t tag = 0;
};

/// A block that is alive, and the limits that its allocation counts for.
struct Live {
  std::uint64_t size;
  std::uint64_t limits;
  Violation born;
  std::size_t rule;  ///< of those that are left out; none otherwise
};
constexpr std::size_t no_rule = std::numeric_limits<std::size_t>::max();

/// A function and a module, as labels have them.
using Site = std::pair<std::uint32_t, std::uint32_t>;
constexpr Site no_stack{journal::no_node, journal::no_node};

/// What came from a site beyond a limit.
struct Over {
  std::uint64_t events = 0;
  std::uint64_t periods = 0;
};

class Judged {
 public:
  Judged(const Limit& limit, const journal::Header& header, const sites::Labels& labels)
      : limit_(limit),
        labels_(labels),
        site_(labels, limit.site),
        active_(limit.after_phase.empty() && limit.after_frames == 0 && limit.after_ns == 0) {
    for (const journal::Thread& one : header.threads) {
      threads_.push_back(limit.thread.empty() || fits(limit.thread, one.name) ||
                         fits(limit.thread, std::to_string(one.id)));
    }
    for (const std::string& name : header.names) tags_.push_back(has_tag(name));
  }

  bool concerns(const Event& event) {
    // What a frame's end finds alive was allocated in that frame, and since the limit began.
    if (limit_.what == Quantity::outliving_blocks && !frame_counts_) return false;
    return threads_[event.thread] && tags_[event.tag] && (limit_.site.empty() || site_.fits(event.site));
  }

  /// Before each event: the time that it happens at.
  void reach(std::uint64_t time_ns) {
    now_ns_ = time_ns;
    if (limit_.after_ns != 0 && time_ns >= limit_.after_ns) activate(limit_.after_ns);
    if (limit_.per != Per::second || !active_) return;
    const std::uint64_t second = (time_ns - since_ns_) / second_ns;
    if (second != second_) close();
    second_ = second;
  }

  void phase(const std::string& name, std::uint64_t frames) {
    if (active_ || limit_.after_phase.empty() || name != limit_.after_phase) return;
    activate(now_ns_);
    // The rest of a frame is no more than the frame: what exceeds a limit there does in the whole. Before the first
    // mark there is none.
    frame_counts_ = frames != 0;
  }

  void frame_ends(std::uint64_t frames) {
    if (limit_.per == Per::frame) {
      if (frame_counts_) close();
      clear();
    }
    if (limit_.after_phase.empty() && limit_.after_frames != 0 && frames >= limit_.after_frames + 1) activate(now_ns_);
    frame_counts_ = active_;
  }

  void count(std::uint64_t amount, const Violation& what) {
    if (!active_ || (limit_.per == Per::frame && !frame_counts_) || amount == 0) return;
    const std::uint64_t before = counted_;
    counted_ += amount;
    if (counted_ <= limit_.most) return;
    if (before <= limit_.most) first_here_ = what;
    ++over_here_[site_of(what.node)];
  }

  void live(std::uint64_t bytes, bool grew, const Violation& what) {
    const bool is_over = bytes > limit_.most;
    const bool crosses = is_over && !was_over_;
    was_over_ = is_over;
    if (crosses) crossing_ = what;
    if (!active_) return;
    worst_ = std::max(worst_, bytes);
    judged_ = 1;
    if (crosses) ++periods_over_;
    if (is_over && grew) exceed(what);
  }

  /// `cut`: the program was stopped within its last frame, which is judged then.
  void finish(bool cut) {
    if (limit_.what == Quantity::live_bytes || !active_) return;
    if (limit_.per != Per::frame || (cut && frame_counts_)) close();
  }

  const Limit& limit() const { return limit_; }
  std::uint64_t held = 0;  ///< bytes alive that count

  Json json(const std::function<Json(const Violation&)>& told) const {
    std::vector<std::pair<Site, Over>> sorted(over_.begin(), over_.end());
    std::stable_sort(sorted.begin(), sorted.end(),
                     [](const auto& a, const auto& b) { return a.second.events > b.second.events; });
    if (sorted.size() > most_sites) sorted.resize(most_sites);
    Json sites = Json::array();
    for (const auto& [site, over] : sorted) {
      const bool has_stack = site != no_stack;
      sites.push_back({{"function", has_stack ? labels_.text(site.first) : std::string()},
                       {"module", has_stack ? file_name(labels_.text(site.second)) : std::string()},
                       {"events", over.events},
                       {"periods", over.periods}});
    }
    return {{"threads", std::count(threads_.begin(), threads_.end(), true)},
            {"active", active_},
            {"judged", judged_},
            {"worst", worst_},
            {"periods_over", periods_over_},
            {"events_over", events_over_},
            {"first", first_ ? told(*first_) : Json()},
            {"sites", sites}};
  }

 private:
  bool has_tag(const std::string& path) const {
    if (!limit_.forbidden.empty()) {
      const auto names = forbidden_in(path);
      return std::find(names.begin(), names.end(), limit_.forbidden) != names.end();
    }
    return limit_.tag.empty() || fits(limit_.tag, path) || fits(limit_.tag, without_forbidden(path));
  }

  void activate(std::uint64_t since_ns) {
    if (active_) return;
    active_ = true;
    since_ns_ = since_ns;
    if (limit_.what != Quantity::live_bytes) return;
    // What is alive already counts, as the call by which it came to exceed the limit.
    worst_ = held;
    judged_ = 1;
    if (!was_over_) return;
    ++periods_over_;
    exceed(crossing_);
  }

  void exceed(const Violation& what) {
    if (!first_) first_ = what;
    Over& over = over_[site_of(what.node)];
    ++over.events;
    ++over.periods;
    ++events_over_;
  }

  /// The function and the module that speak for a stack.
  Site site_of(std::uint32_t node) const {
    if (node == journal::no_node) return no_stack;
    const sites::Label& speaker = labels_.speaker(node);
    return {speaker.function, speaker.module};
  }

  /// The end of a frame, a second or the run.
  void close() {
    ++judged_;
    worst_ = std::max(worst_, counted_);
    if (counted_ > limit_.most) {
      ++periods_over_;
      if (!first_) first_ = first_here_;
      for (const auto& [site, events] : over_here_) {
        over_[site].events += events;
        ++over_[site].periods;
        events_over_ += events;
      }
    }
    clear();
  }

  void clear() {
    counted_ = 0;
    over_here_.clear();
  }

  const Limit& limit_;
  const sites::Labels& labels_;
  StackFilter site_;
  std::vector<bool> threads_;
  std::vector<bool> tags_;
  bool active_;
  bool frame_counts_ = false;
  bool was_over_ = false;
  Violation crossing_;  ///< the call that last brought what is alive above the limit
  std::uint64_t now_ns_ = 0;
  std::uint64_t since_ns_ = 0;
  std::uint64_t second_ = 0;
  std::uint64_t counted_ = 0;  ///< in this period
  Violation first_here_;
  std::map<Site, std::uint64_t> over_here_;  ///< events beyond the limit, in this period
  std::uint64_t judged_ = 0;
  std::uint64_t worst_ = 0;
  std::uint64_t periods_over_ = 0;
  std::uint64_t events_over_ = 0;
  std::optional<Violation> first_;
  std::map<Site, Over> over_;
};

/// What a pattern of `ignored` left out.
struct Ignored {
  StackFilter filter;
  std::uint64_t events = 0;
  std::uint64_t bytes = 0;
};

class Court {
 public:
  Court(const Limits& limits, const journal::Header& header, const sites::Labels& labels, std::uint32_t frame_thread)
      : header_(header), labels_(labels), frame_thread_(frame_thread), cut_(limits.cut) {
    for (const Limit& one : limits.limits) judged_.emplace_back(one, header, labels);
    std::set<std::string> names;
    for (const std::string& path : header.names) {
      for (std::string& name : forbidden_in(path)) names.insert(std::move(name));
    }
    for (const std::string& name : names) {
      Limit& limit = forbidden_.emplace_back();
      limit.forbidden = name;
      judged_.emplace_back(limit, header, labels);
    }
    if (judged_.size() > most_limits) {
      throw journal::Error(
          "limits and stretches that must not allocate are more than 64 together, which can't be "
          "judged at once");
    }
    for (const std::string& pattern : limits.ignored) ignored_.push_back({StackFilter(labels, pattern)});
  }

  void add(const Event& event, bool preamble) {
    for (Judged& one : judged_) one.reach(event.time_ns);
    if (event.kind == Kind::phase_mark) {
      for (Judged& one : judged_) one.phase(header_.names[event.tag], frames_);
      return;
    }
    if (event.kind == Kind::frame_mark) {
      if (event.thread == frame_thread_) frame_ends();
      return;
    }
    const Violation what{event.time_ns, frames_, event.thread, event.site, event.size, event.kind, event.tag};
    const std::size_t rule = preamble ? no_rule : rule_of(event);
    const bool counts = !preamble && rule == no_rule;
    std::uint64_t concerned = 0;
    for (std::size_t at = 0; counts && at < judged_.size(); ++at) {
      if (judged_[at].concerns(event)) concerned |= std::uint64_t{1} << at;
    }
    if (takes_block(event.kind)) release(ended_block(event), what);
    if (gives_block(event.kind)) give(event, concerned, what, rule);
    for (std::size_t at = 0; at < judged_.size(); ++at) {
      if ((concerned >> at & 1) != 0) judged_[at].count(amount(judged_[at].limit().what, event), what);
    }
  }

  Json finish() {
    Json limits = Json::array();
    Json forbidden = Json::array();
    for (Judged& one : judged_) {
      one.finish(cut_);
      const std::string& name = one.limit().forbidden;
      Json found = one.json([this](const Violation& what) { return told(what); });
      if (!name.empty()) found["name"] = name;
      (name.empty() ? limits : forbidden).push_back(std::move(found));
    }
    Json ignored = Json::array();
    for (const Ignored& one : ignored_) ignored.push_back({{"events", one.events}, {"bytes", one.bytes}});
    Json threads = Json::array();
    for (const journal::Thread& one : header_.threads) {
      threads.push_back(one.name.empty() ? std::to_string(one.id) : one.name);
    }
    return {{"frames", frames_ == 0 ? 0 : frames_ - 1},
            {"threads", threads},
            {"limits", limits},
            {"forbidden", forbidden},
            {"ignored", ignored}};
  }

 private:
  static std::uint64_t amount(Quantity what, const Event& event) {
    switch (what) {
      case Quantity::allocations:
        return gives_block(event.kind) ? 1 : 0;
      case Quantity::allocated_bytes:
        return gives_block(event.kind) ? event.size : 0;
      case Quantity::frees:
        return takes_block(event.kind) ? 1 : 0;
      case Quantity::reallocations:
        return event.kind == Kind::reallocate ? 1 : 0;
      case Quantity::live_bytes:
      case Quantity::outliving_blocks:
        return 0;
    }
    return 0;
  }

  /// The first rule that leaves the event out: by its stack, or because its block was left out when it was allocated.
  std::size_t rule_of(const Event& event) {
    std::size_t rule = 0;
    while (rule < ignored_.size() && !ignored_[rule].filter.fits(event.site)) ++rule;
    if (rule == ignored_.size()) {
      const Live* const ended = takes_block(event.kind) ? live_.find(ended_block(event) + 1) : nullptr;
      rule = ended == nullptr ? no_rule : ended->rule;
    }
    if (rule == no_rule) return rule;
    ++ignored_[rule].events;
    if (gives_block(event.kind)) ignored_[rule].bytes += event.size;
    return rule;
  }

  void give(const Event& event, std::uint64_t concerned, const Violation& what, std::size_t rule) {
    live_.insert(event.block + 1, Live{event.size, concerned, what, rule});
    if (concerned != 0) born_.push_back(event.block);
    hold(concerned, event.size, what);
  }

  void release(std::uint64_t block, const Violation& what) {
    Live ended{};
    if (!live_.take(block + 1, ended)) return;
    for (std::size_t at = 0; at < judged_.size(); ++at) {
      if ((ended.limits >> at & 1) == 0) continue;
      judged_[at].held -= ended.size;
      if (judged_[at].limit().what == Quantity::live_bytes) judged_[at].live(judged_[at].held, false, what);
    }
  }

  void hold(std::uint64_t concerned, std::uint64_t size, const Violation& what) {
    for (std::size_t at = 0; at < judged_.size(); ++at) {
      if ((concerned >> at & 1) == 0) continue;
      judged_[at].held += size;
      if (judged_[at].limit().what == Quantity::live_bytes) judged_[at].live(judged_[at].held, true, what);
    }
  }

  void frame_ends() {
    ++frames_;
    for (const std::uint64_t block : born_) {
      const Live* const born = live_.find(block + 1);
      if (born == nullptr) continue;
      for (std::size_t at = 0; at < judged_.size(); ++at) {
        if ((born->limits >> at & 1) != 0 && judged_[at].limit().what == Quantity::outliving_blocks)
          judged_[at].count(1, born->born);
      }
    }
    born_.clear();
    for (Judged& one : judged_) one.frame_ends(frames_);
  }

  Json told(const Violation& what) const {
    Json stack = Json::array();
    for (std::uint32_t node = what.node; node != journal::no_node; node = labels_.stacks().nodes()[node].parent) {
      for (const sites::Label& one : labels_.of_frame(labels_.stacks().nodes()[node].frame)) {
        stack.push_back({{"function", labels_.text(one.function)},
                         {"file", labels_.text(one.file)},
                         {"line", one.line},
                         {"module", file_name(labels_.text(one.module))}});
      }
    }
    constexpr const char* kinds[] = {"malloc", "calloc", "aligned malloc", "free", "realloc"};
    const journal::Thread& thread = header_.threads[what.thread];
    return {{"time_s", static_cast<double>(what.time_ns) / 1e9},
            {"frame", what.frame},
            {"thread", thread.name.empty() ? std::to_string(thread.id) : thread.name},
            {"call", kinds[static_cast<std::size_t>(what.kind)]},
            {"bytes", what.size},
            {"tag", header_.names[what.tag]},
            {"stack", stack}};
  }

  const journal::Header& header_;
  const sites::Labels& labels_;
  std::uint32_t frame_thread_;
  bool cut_;
  std::deque<Limit> forbidden_;  ///< what the program itself forbids
  std::vector<Judged> judged_;
  std::vector<Ignored> ignored_;
  journal::FlatMap<Live> live_{1U << 16};  ///< block + 1
  std::vector<std::uint64_t> born_;        ///< blocks of this frame
  std::uint64_t frames_ = 0;               ///< marks so far
};

}  // namespace

Json judge(const std::string& path, const Limits& limits, const journal::Progress& progress) {
  const auto known = journal::open(path);
  journal::FrameMarks marks;
  journal::for_each_event(*known, {}, [&marks](const Event& event) { marks.add(event); });
  const sites::Labels labels(known->stacks(), false);
  Court court(limits, known->header(), labels, marks.most().first);
  const auto source = journal::open(path);
  std::uint64_t number = 0;
  journal::for_each_event(*source, progress,
                          [&](const Event& event) { court.add(event, number++ < known->header().preamble_events); });
  return court.finish();
}

}  // namespace blockyard::budget
