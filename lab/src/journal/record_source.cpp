#include "journal/record_source.hpp"

#include <algorithm>
#include <cinttypes>
#include <cstdio>

namespace blockyard::journal {
namespace {

constexpr std::size_t batch = 4096;
constexpr std::size_t prefetch_lines = 12;  // resolving so many lines takes about as long as a main-memory access
constexpr int deepest_pull = 4;             // a pulled line may need another one first
constexpr std::uint64_t worth_a_thread_bytes = 1U << 20;

std::string hex(std::uint64_t address) {
  char text[17];
  std::snprintf(text, sizeof text, "%016" PRIX64, address);
  return text;
}

}  // namespace

RecordSource::RecordSource(std::unique_ptr<RecordParser> parser, std::string path, std::string_view form)
    : parser_(std::move(parser)), path_(std::move(path)), form_(form), may_miss_calls_(parser_->may_miss_calls()) {
  events_.reserve(batch + deepest_pull);
  parse_ahead();
  refill();
}

// On a thread of its own, so that decompression and parsing overlap with the rest. A small input is parsed when it is
// needed: a thread would cost more.
void RecordSource::parse_ahead() {
  const auto when = parser_->bytes_total() < worth_a_thread_bytes ? std::launch::deferred : std::launch::async;
  ahead_ = std::async(when, [this, &chunk = chunks_[parsed_++ % 2]] { parser_->next(chunk); });
}

void RecordSource::fail(const Record& record, const std::string& what) const {
  throw Error(path_ + ", line " + std::to_string(record.line) + " (event " +
              std::to_string(events_before_ + events_.size()) + "): " + what);
}

// Keeps the records that were read ahead and appends chunks. False when nothing is left to emit.
bool RecordSource::refill() {
  window_.erase(window_.begin(), window_.begin() + static_cast<std::ptrdiff_t>(cursor_));
  cursor_ = 0;
  // Twice the window, so that keeping it costs each line one copy.
  while (!read_all_ && window_.size() < 2 * window_lines) {
    ahead_.get();
    const Chunk& chunk = chunks_[(parsed_ - 1) % 2];
    if (!chunk.last) parse_ahead();
    append(chunk);
  }
  ready_ = read_all_ ? window_.size() : window_.size() - window_lines;
  return cursor_ < ready_;
}

void RecordSource::append(const Chunk& chunk) {
  bytes_read_ = chunk.bytes_read;
  read_all_ = chunk.last;
  if (chunk.header) {
    header_ = *chunk.header;
    annotated_addresses_ = header_.has_addresses && chunk.annotated;
    preamble_said_ = header_.preamble_events != preamble_unsaid;
    if (!preamble_said_) header_.preamble_events = preamble_;
  }
  if (chunk.stacks) chunk.stacks->add_to(stacks_);
  torn_ = chunk.torn;
  cut_ = chunk.cut;
  const auto had = static_cast<std::ptrdiff_t>(window_.size());
  bool in_order = true;
  for (const Record& record : chunk.records) {
    if (record.time_ns < latest_ns_) {
      in_order = false;
      ++times_back_;
    } else {
      latest_ns_ = record.time_ns;
    }
    window_.push_back(record);
    if (record.extra == no_extra) continue;
    if (free_extras_.empty()) {
      free_extras_.push_back(static_cast<std::uint32_t>(extras_.size()));
      extras_.emplace_back();
    }
    window_.back().extra = free_extras_.back();
    free_extras_.pop_back();
    extras_[window_.back().extra] = chunk.extras[record.extra];
  }
  if (in_order) return;
  const auto is_earlier = [](const Record& a, const Record& b) { return a.time_ns < b.time_ns; };
  const auto added = window_.begin() + had;
  std::stable_sort(added, window_.end(), is_earlier);
  std::inplace_merge(std::upper_bound(window_.begin(), added, *added, is_earlier), added, window_.end(), is_earlier);
}

std::span<const Event> RecordSource::next() {
  events_before_ += events_.size();
  events_.clear();
  while (events_.size() < batch) {
    if (cursor_ == ready_ && !refill()) {
      conclude();
      break;
    }
    const std::size_t stop = std::min(ready_, cursor_ + batch - events_.size());
    for (; cursor_ < stop; ++cursor_) {
      if (cursor_ + prefetch_lines < window_.size()) blocks_.prefetch(window_[cursor_ + prefetch_lines].address);
      Record& record = window_[cursor_];
      if (!record.done) emit(record, cursor_, 0);
    }
  }
  if (in_preamble_ && !preamble_said_) {
    for (const Event& event : events_) {
      in_preamble_ = event.time_ns == 0 && gives_block(event.kind) && event.kind != Kind::reallocate;
      if (!in_preamble_) break;
      ++preamble_;
    }
    header_.preamble_events = preamble_;
  }
  return events_;
}

void RecordSource::emit(Record& record, std::size_t index, int depth) {
  // A pulled record takes the time of the record that needs it.
  if (depth == 0) {
    if (record.time_ns < time_ns_) {
      const char* const unit = header_.paced ? " ns" : "";
      fail(record, std::string(header_.paced ? "the time" : "the number") + " goes back to " +
                       std::to_string(record.time_ns) + unit + " behind " + std::to_string(time_ns_) + unit +
                       ", by more than the 262,144 lines that are put in order; sort the lines by it");
    }
    time_ns_ = record.time_ns;
  }
  record.done = true;
  Event event;
  event.kind = record.kind;
  event.thread = record.thread;
  event.size = record.size;
  if (record.extra != no_extra) {
    const Extra& extra = extras_[record.extra];
    event.duration_ns = extra.duration_ns;
    event.alignment = extra.alignment;
    event.site = extra.site;
    event.tag = extra.tag;
    if (record.kind == Kind::reallocate && !take_block(record, index, extra.old_address, depth, event.old_block)) {
      event.kind = Kind::allocate;
      event.duration_ns = 0;
    }
    free_extras_.push_back(record.extra);
  }
  if (record.kind == Kind::free) {
    if (!take_block(record, index, record.address, depth, event.block)) return;
  } else if (gives_block(record.kind)) {
    give_block(record, index, depth);
    event.block = next_block_++;
    event.address = record.address;
  }
  event.time_ns = time_ns_;
  events_.push_back(event);
}

// False, and counted, where the writer may have missed the block's allocation.
bool RecordSource::take_block(const Record& record, std::size_t index, std::uint64_t address, int depth,
                              std::uint64_t& block) {
  if (blocks_.take(address, block)) return true;
  if (may_miss_calls_) {
    ++unseen_allocations_;
    return false;
  }
  if (pull_forward(record, index, address, false, depth) && blocks_.take(address, block)) {
    ++allocations_pulled_;
    return true;
  }
  fail(record, "a free of nothing: no block is live at " + hex(address) +
                   ", and no other thread allocates one there within 16,384 lines");
}

void RecordSource::give_block(const Record& record, std::size_t index, int depth) {
  if (blocks_.insert(record.address, next_block_)) return;
  // The pulled free is an event before this one; a pulled realloc may even give a block, so the id is taken afterwards.
  if (pull_forward(record, index, record.address, true, depth) && blocks_.insert(record.address, next_block_)) {
    ++frees_pulled_;
    return;
  }
  if (!may_miss_calls_) {
    fail(record, "a block is allocated twice: " + hex(record.address) +
                     " is still live, and no other thread frees it within 16,384 lines");
  }
  ++unseen_frees_;
  Event freed;
  freed.kind = Kind::free;
  freed.time_ns = time_ns_;
  freed.thread = record.thread;
  blocks_.take(record.address, freed.block);
  events_.push_back(freed);
  blocks_.insert(record.address, next_block_);
}

bool RecordSource::takes(const Record& record, std::uint64_t address) const {
  return record.kind == Kind::free ? record.address == address
                                   : record.kind == Kind::reallocate && extras_[record.extra].old_address == address;
}

/// The next record behind `index` that names the address, within pulled_lines; the window's size where there is none.
std::size_t RecordSource::next_of(std::size_t index, std::uint64_t address) const {
  const std::size_t stop = std::min(window_.size(), index + pulled_lines);
  for (std::size_t i = index + 1; i < stop; ++i) {
    const Record& ahead = window_[i];
    if (!ahead.done && (ahead.address == address || takes(ahead, address))) return i;
  }
  return window_.size();
}

// Emits the next line that names the address, if it is of the wanted kind and another thread's. A thread's own lines
// are in its own order, so they can't explain anything.
bool RecordSource::pull_forward(const Record& record, std::size_t index, std::uint64_t address, bool wanted_free,
                                int depth) {
  if (depth == deepest_pull) return false;
  const std::size_t next = next_of(index, address);
  if (next == window_.size()) return false;
  Record& ahead = window_[next];
  const bool gives = gives_block(ahead.kind) && ahead.address == address;
  if (takes(ahead, address) != wanted_free || (may_miss_calls_ && gives)) return false;
  if (ahead.thread == record.thread && header_.threads_known) return false;
  if (may_miss_calls_) {
    // Between two allocations it is the free of the block that this record gives; the one before was missed.
    const std::size_t then = next_of(next, address);
    if (then != window_.size() && !takes(window_[then], address)) return false;
  }
  emit(ahead, next, depth + 1);
  return true;
}

void RecordSource::note(std::string sentence) {
  header_.repairs.push_back(sentence);
  notes_.push_back(std::move(sentence));
}

void RecordSource::count(std::uint64_t times, const char* one, const char* many, const std::string& rest) {
  if (times != 0) note(std::to_string(times) + " " + (times == 1 ? one : many) + rest);
}

void RecordSource::conclude() {
  if (concluded_) return;
  concluded_ = true;
  if (may_miss_calls_) notes_ = header_.repairs;  // its parser made them now; a text's were made before
  if (cut_) {
    note("its compressed stream is cut off, and the events behind that are missing");
  } else if (torn_) {
    note("its end is cut off in the midst of an event, which was left out");
  }
  const std::string key = header_.paced ? "time" : "number";
  count(times_back_, "line stood behind a later ", "lines stood behind a later ",
        key + " and " + (times_back_ == 1 ? "was" : "were") + " put in order, within 262,144 lines");
  const std::string which = header_.threads_known ? "another thread's" : "an";
  count(frees_pulled_, "free stood behind ", "frees stood behind ",
        which + " allocation of the same address and " + (frees_pulled_ == 1 ? "was" : "were") + " put before it");
  count(allocations_pulled_, "allocation stood behind ", "allocations stood behind ",
        "another thread's free of it and " + std::string(allocations_pulled_ == 1 ? "was" : "were") + " put before it");
  count(unseen_allocations_, "free or realloc names a block", "frees and reallocs name a block",
        " whose allocation is missing: frees were left out, reallocs became allocations");
  count(unseen_frees_, "block was", "blocks were",
        " freed where the address was allocated again, because the free is missing");
}

bool keeps_addresses(const Source& source) {
  const auto* const text = dynamic_cast<const RecordSource*>(&source);
  return text != nullptr ? text->asks_for_addresses() : source.header().has_addresses;
}

}  // namespace blockyard::journal
