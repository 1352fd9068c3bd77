#include "journal/convert.hpp"

#include <algorithm>
#include <optional>
#include <unordered_map>

#include "journal/record_source.hpp"
#include "journal/stack_copy.hpp"

namespace blockyard::journal {
namespace {

/// Holds a free back until the next event shows whether it was half of a realloc.
class ReallocJoiner {
 public:
  template <typename Put>
  void add(const Event& event, Put put) {
    if (held_ && event.kind == Kind::allocate && event.thread == held_->thread && event.time_ns == held_->time_ns) {
      Event joined = event;
      joined.kind = Kind::reallocate;
      joined.old_block = held_->block;
      held_.reset();
      ++joined_;
      put(joined);
      return;
    }
    flush(put);
    if (event.kind == Kind::free) {
      held_ = event;
    } else {
      put(event);
    }
  }
  template <typename Put>
  void flush(Put put) {
    if (held_) put(*held_);
    held_.reset();
  }
  std::uint64_t joined() const { return joined_; }

 private:
  std::optional<Event> held_;
  std::uint64_t joined_ = 0;
};

/// Replaces a header's names by numbers that keep apart what was apart, and leaves out the program and its arguments.
class Anonymizer {
 public:
  /// The header as it stands now; valid until the next call.
  const Header& without_texts(const Header& header) {
    header_ = header;
    header_.program = "anonymous";
    header_.command.clear();
    header_.allocator.clear();
    header_.recording.clear();
    if (!header_.unseen.empty()) header_.unseen = {"the recorder did not see all that the program allocated"};
    for (auto& thread : header_.threads) {
      if (!thread.name.empty()) thread.name = "thread-" + number(thread.name);
    }
    // A tag is a path: its parts keep their places.
    for (auto& name : header_.names) {
      std::string numbered;
      for (std::size_t at = 0; !name.empty() && at <= name.size();) {
        const std::size_t end = std::min(name.find('/', at), name.size());
        numbered += (at == 0 ? "name-" : "/name-") + number(name.substr(at, end - at));
        at = end + 1;
      }
      name = numbered;
    }
    return header_;
  }

 private:
  std::string number(const std::string& name) {
    return numbers_.try_emplace(name, std::to_string(numbers_.size() + 1)).first->second;
  }

  Header header_;
  std::unordered_map<std::string, std::string> numbers_;
};

}  // namespace

Outcome convert(const std::string& input, const std::string& output, const ConvertOptions& options,
                const Progress& progress) {
  const auto source = open(input, AtDamage::fail, options.from);
  const auto* text = dynamic_cast<const RecordSource*>(source.get());
  OutputOptions out;
  out.overwrite = options.overwrite;
  out.form = options.to;
  out.addresses = options.addresses || keeps_addresses(*source);
  out.text.notes = !options.plain;
  out.text.preamble_known = text == nullptr || text->says_preamble();
  if (options.addresses && !source->header().has_addresses) {
    throw Error(input + " keeps no addresses; leave out --addresses");
  }
  std::optional<Pacer> pacer;
  if (options.pace) {
    if (source->header().paced) {
      throw Error(input + " has times of its own; --rate and --frames-of are for journals without");
    }
    pacer.emplace(*options.pace);
  }
  Anonymizer anonymizer;
  Header changed;
  const auto header = [&]() -> const Header& {
    const Header& own = options.anonymous ? anonymizer.without_texts(source->header()) : source->header();
    if (!pacer) return own;
    changed = own;
    pacer->mark(changed);
    return changed;
  };
  const Texts texts = options.anonymous ? Texts::number : Texts::keep;
  JournalOutput journal(output, input, header(), out);
  const Header* now = nullptr;
  const auto put = [&](const Event& event) { journal.add(event, *now); };
  ReallocJoiner joiner;
  std::uint64_t events_read = 0;
  for (auto events = source->next(); !events.empty(); events = source->next()) {
    copy_tables(source->stacks(), journal.stacks(), texts, source->header().program);
    now = &header();
    for (const Event& event : events) {
      if (options.join_realloc) {
        joiner.add(event, put);
      } else if (pacer) {
        pacer->add(event, events_read++ < source->header().preamble_events, put);
      } else {
        put(event);
      }
    }
    report(progress, *source);
  }
  joiner.flush(put);
  Outcome outcome;
  copy_tables(source->stacks(), journal.stacks(), texts, source->header().program);
  copy_names(source->stacks(), journal.stacks(), texts);
  journal.finish(header());
  outcome.events = journal.events();
  outcome.preamble_events = source->header().preamble_events;
  outcome.bytes = journal.bytes();
  outcome.joined = joiner.joined();
  outcome.notes.assign(source->notes().begin(), source->notes().end());
  if (pacer) outcome.notes.push_back(header().repairs.back());
  outcome.notes.insert(outcome.notes.end(), journal.notes().begin(), journal.notes().end());
  return outcome;
}

}  // namespace blockyard::journal
