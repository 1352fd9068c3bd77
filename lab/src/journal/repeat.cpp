#include "journal/repeat.hpp"

#include <algorithm>
#include <memory>
#include <optional>
#include <vector>

#include "journal/flat_map.hpp"
#include "journal/journal_output.hpp"
#include "journal/record_source.hpp"
#include "journal/stack_copy.hpp"

namespace blockyard::journal {
namespace {

/// Between two events of a seam: a million of them per second, as fast as a loading game allocates.
constexpr std::uint64_t seam_step_ns = 1'000;
constexpr std::uint64_t most_ns = ~std::uint64_t{0} / 2;

class Repetitions {
 public:
  Repetitions(const std::string& input, const std::string& output, const RepeatOptions& options)
      : input_(input), output_(output), options_(options) {}

  /// Writes one more repetition. `source` is at its beginning.
  void add(Source& source, const Progress& progress) {
    if (!journal_) begin(source);
    const bool first = done_ == 0;
    number_ = 0;
    for (auto events = source.next(); !events.empty(); events = source.next()) {
      if (first) {
        header_ = source.header();
        copy_tables(source.stacks(), journal_->stacks());
      }
      for (const Event& event : events) {
        const bool preamble = number_++ < source.header().preamble_events;
        if (!preamble) begin_measured();
        follow(event);
        put(event, preamble && !first ? seam_time() : event.time_ns + shift_ns_);
      }
      report(progress, source);
    }
    if (number_ == 0) throw Error(input_ + " has no events to repeat");
    begin_measured();
    if (first) {
      copy_tables(source.stacks(), journal_->stacks());
      copy_names(source.stacks(), journal_->stacks());
    }
    ++done_;
  }

  /// Writes what lies between two repetitions.
  void seam() {
    std::vector<Alive> alive;
    alive.reserve(alive_.size());
    alive_.for_each([&alive](std::uint64_t, const Alive& block) { alive.push_back(block); });
    std::sort(alive.begin(), alive.end(), [](const Alive& a, const Alive& b) { return a.block < b.block; });
    in_seam_ = true;
    for (const Alive& block : alive) {
      Event event;
      event.kind = Kind::free;
      event.block = block.block - first_block_;
      event.thread = block.thread;
      put(event, seam_time());
    }
    freed_in_seams_ += alive.size();
    alive_ = FlatMap<Alive>();
    first_block_ = blocks_;
  }

  Outcome finish() {
    Outcome outcome;
    outcome.preamble_events = header_.preamble_events;
    journal_->finish(header_);
    outcome.events = journal_->events();
    outcome.bytes = journal_->bytes();
    if (freed_in_seams_ != 0) {
      outcome.notes.push_back(std::to_string(freed_in_seams_) +
                              " blocks that were still alive at the end of a repetition are freed before the next");
    }
    return outcome;
  }

 private:
  struct Alive {
    std::uint64_t block = 0;  ///< its id in the output
    std::uint32_t thread = 0;
  };

  void begin(const Source& source) {
    OutputOptions out;
    out.overwrite = options_.overwrite;
    out.addresses = keeps_addresses(source);
    journal_.emplace(output_, input_, source.header(), out);
    header_ = source.header();
  }

  // The seam is over, and the preamble that is its second half: the journal's own times count from here.
  void begin_measured() {
    if (!in_seam_) return;
    in_seam_ = false;
    shift_ns_ = last_ns_ + seam_step_ns;
  }

  std::uint64_t seam_time() const { return last_ns_ + seam_step_ns; }

  void follow(const Event& event) {
    Alive ignored;
    if (takes_block(event.kind)) {
      const std::uint64_t gone = ended_block(event);
      if (!alive_.take(gone + 1, ignored)) {
        throw Error(input_ + ", event " + std::to_string(number_ - 1) + ": " + freed_but_not_live(gone));
      }
    }
    if (gives_block(event.kind)) alive_.insert(event.block + 1, {first_block_ + event.block, event.thread});
  }

  // `event` has the ids of its own repetition.
  void put(const Event& event, std::uint64_t time_ns) {
    if (time_ns > most_ns) throw Error("so many repetitions last longer than a journal's clock goes; ask for fewer");
    Event moved = event;
    moved.time_ns = last_ns_ = time_ns;
    if (event.kind == Kind::free || gives_block(event.kind)) moved.block += first_block_;
    if (event.kind == Kind::reallocate) moved.old_block += first_block_;
    if (gives_block(event.kind)) ++blocks_;
    journal_->add(moved, header_);
  }

  std::string input_;
  std::string output_;
  RepeatOptions options_;
  Header header_;  ///< of the first repetition: the others' are the same
  std::optional<JournalOutput> journal_;
  FlatMap<Alive> alive_;           ///< by the id in this repetition, plus 1
  std::uint64_t done_ = 0;         ///< repetitions
  std::uint64_t number_ = 0;       ///< of the next event in this repetition
  std::uint64_t blocks_ = 0;       ///< given so far
  std::uint64_t first_block_ = 0;  ///< of this repetition
  std::uint64_t shift_ns_ = 0;     ///< what this repetition's times are moved by
  std::uint64_t last_ns_ = 0;      ///< of the event written last
  std::uint64_t freed_in_seams_ = 0;
  bool in_seam_ = false;
};

}  // namespace

Outcome repeat(const std::string& input, const std::string& output, const RepeatOptions& options,
               const Progress& progress) {
  if (options.times == 0) throw Error("0 repetitions make no journal; ask for at least 1");
  { const OutputFile refuses_a_bad_name_before_the_long_pass(output, input, options.overwrite); }
  Repetitions repetitions(input, output, options);
  std::vector<std::string> notes;
  for (std::uint64_t done = 0; done < options.times; ++done) {
    if (done != 0) repetitions.seam();
    const auto source = open(input);
    Progress part;
    if (progress) {
      part = [&](double fraction) {
        progress((static_cast<double>(done) + fraction) / static_cast<double>(options.times));
      };
    }
    repetitions.add(*source, part);
    notes.assign(source->notes().begin(), source->notes().end());
  }
  Outcome outcome = repetitions.finish();
  outcome.notes.insert(outcome.notes.begin(), notes.begin(), notes.end());
  return outcome;
}

}  // namespace blockyard::journal
