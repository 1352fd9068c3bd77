#include "journal/cut.hpp"

#include <algorithm>
#include <cstdio>
#include <memory>
#include <optional>
#include <vector>

#include "journal/byj_reader.hpp"
#include "journal/flat_map.hpp"
#include "journal/journal_output.hpp"
#include "journal/record_source.hpp"
#include "journal/stack_copy.hpp"

namespace blockyard::journal {
namespace {

std::string seconds(std::uint64_t ns) {
  char text[32];
  std::snprintf(text, sizeof text, "%.3f", static_cast<double>(ns) / 1e9);
  return text;
}

/// The blocks that live before the stretch; within it, old ids and the new ones.
class Stretch {
 public:
  Stretch(const std::string& output, const std::string& input, const Source& source, const CutOptions& options)
      : output_(output), input_(input), source_(source), options_(options) {}

  /// False when the stretch has ended.
  bool add(const Event& event, bool preamble) {
    ++number_;
    if (!journal_) {
      if (preamble || event.time_ns < options_.from_ns) {
        remember(event);
        return true;
      }
      begin();
    }
    if (options_.to_ns != CutOptions{}.to_ns && event.time_ns >= options_.to_ns) {
      cut_at_end_ = true;
      return false;
    }
    Event moved = event;
    moved.time_ns -= std::min(event.time_ns, options_.from_ns);
    if (event.kind == Kind::free) moved.block = gone(event.block);
    if (event.kind == Kind::reallocate) moved.old_block = gone(event.old_block);
    if (gives_block(event.kind)) {
      moved.block = next_block_++;
      new_ids_.insert(event.block + 1, moved.block);
    }
    moved.site = stacks_->node(event.site);
    journal_->add(moved, header());
    last_ns_ = event.time_ns;
    ++measured_;
    return true;
  }

  /// `damage`: why the journal ends before its end; `stack_damage`: why events lost their call stacks, or if not
  /// `lost_stacks` these their names. Or empty.
  Outcome finish(const std::string& damage, const std::string& stack_damage, bool lost_stacks) {
    if (!damage.empty()) cut_at_end_ = true;
    if (measured_ == 0 && !damage.empty()) {
      throw Error(damage + (number_ == 0 ? "; no event before it is whole"
                                         : "; no event before it is of the stretch, so there is nothing to save"));
    }
    if (number_ == 0) throw Error(input_ + " holds no whole event, so there is nothing to cut");
    if (measured_ == 0) {
      throw Error(input_ + " has no event from " + seconds(options_.from_ns) + " s on" +
                  (options_.to_ns == CutOptions{}.to_ns ? "" : " before " + seconds(options_.to_ns) + " s") +
                  "; `blockyard info` shows how long it is");
    }
    Outcome outcome;
    outcome.preamble_events = preamble_events_;
    stacks_->finish();
    journal_->finish(header());
    outcome.events = journal_->events();
    outcome.bytes = journal_->bytes();
    if (!damage.empty()) {
      throw Error(damage + "; what comes before it, up to " + seconds(last_ns_) + " s, is in " + output_);
    }
    if (!stack_damage.empty()) {
      throw Error(stack_damage + "; " + output_ + " holds all events" +
                  (lost_stacks ? ", without the call stacks that are lost"
                               : " and call stacks, without the names that are lost"));
    }
    return outcome;
  }

 private:
  Header header() const {
    Header header = source_.header();
    header.preamble_events = preamble_events_;
    header.cut_at_end = header.cut_at_end || cut_at_end_;
    return header;
  }

  [[noreturn]] void fail(std::uint64_t block) const {
    throw Error(input_ + ", event " + std::to_string(number_ - 1) + ": " + freed_but_not_live(block));
  }

  void remember(const Event& event) {
    Event ignored;
    if (takes_block(event.kind) && !live_.take(ended_block(event) + 1, ignored)) fail(ended_block(event));
    if (gives_block(event.kind)) live_.insert(event.block + 1, event);
  }

  void begin() {
    std::vector<Event> alive;
    alive.reserve(live_.size());
    live_.for_each([&alive](std::uint64_t, const Event& event) { alive.push_back(event); });
    live_ = FlatMap<Event>();
    std::sort(alive.begin(), alive.end(), [](const Event& a, const Event& b) { return a.block < b.block; });
    preamble_events_ = alive.size();
    OutputOptions out;
    out.overwrite = options_.overwrite;
    out.addresses = keeps_addresses(source_);
    journal_.emplace(output_, input_, header(), out);
    stacks_.emplace(source_.stacks(), journal_->stacks(), options_.from_ns);
    for (Event& event : alive) {
      new_ids_.insert(event.block + 1, next_block_);
      if (event.kind == Kind::reallocate) event.kind = Kind::allocate;
      event.old_block = no_block;
      event.duration_ns = 0;
      event.time_ns = 0;
      event.block = next_block_++;
      event.site = stacks_->node(event.site);
      journal_->add(event, source_.header());
    }
  }

  std::uint64_t gone(std::uint64_t block) {
    std::uint64_t id = 0;
    if (!new_ids_.take(block + 1, id)) fail(block);
    return id;
  }

  std::string output_;
  std::string input_;
  const Source& source_;
  CutOptions options_;
  FlatMap<Event> live_;
  FlatMap<std::uint64_t> new_ids_;
  std::optional<JournalOutput> journal_;
  std::optional<StackSubset> stacks_;
  std::uint64_t number_ = 0;
  std::uint64_t next_block_ = 0;
  std::uint64_t preamble_events_ = 0;
  std::uint64_t measured_ = 0;
  std::uint64_t last_ns_ = 0;  ///< of the input
  bool cut_at_end_ = false;
};

}  // namespace

Outcome cut(const std::string& input, const std::string& output, const CutOptions& options, const Progress& progress) {
  if (options.from_ns >= options.to_ns) {
    throw Error("a stretch from " + seconds(options.from_ns) + " s to " + seconds(options.to_ns) +
                " s is empty; --from must be below --to");
  }
  const auto source = open(input, AtDamage::end);
  { const OutputFile refuses_a_bad_name_before_the_long_pass(output, input, options.overwrite); }
  Stretch stretch(output, input, *source, options);
  std::uint64_t number = 0;
  bool inside = true;
  while (inside) {
    const auto events = source->next();
    if (events.empty()) break;
    for (const Event& event : events) {
      inside = stretch.add(event, number++ < source->header().preamble_events);
      if (!inside) break;
    }
    report(progress, *source);
  }
  const auto* byj = dynamic_cast<const ByjSource*>(source.get());
  Outcome outcome = byj == nullptr ? stretch.finish("", "", false)
                                   : stretch.finish(byj->damage(), byj->stack_damage(), byj->lost_stacks());
  outcome.notes.assign(source->notes().begin(), source->notes().end());
  return outcome;
}

}  // namespace blockyard::journal
