#include "journal/text_reader.hpp"

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

std::string plural(std::uint64_t count, const char* one, const char* many) {
  return std::to_string(count) + " " + (count == 1 ? one : many);
}

}  // namespace

bool looks_like_text(std::string_view first_bytes) {
  // "a" alone is enough: a first line that is wrong after it deserves the message with its line number.
  return !first_bytes.empty() && std::string_view("af#\r\n").find(first_bytes.front()) != std::string_view::npos;
}

TextSource::TextSource(std::unique_ptr<Input> input, const std::string& path)
    : path_(path), bytes_total_(input->bytes_total()), parser_(std::move(input), path) {
  events_.reserve(batch + deepest_pull);
  parse_ahead();
  refill();
}

// On a thread of its own, so that decompression and parsing overlap with the rest. A small input is parsed when it is
// needed: a thread would cost more.
void TextSource::parse_ahead() {
  const auto when = bytes_total_ < worth_a_thread_bytes ? std::launch::deferred : std::launch::async;
  ahead_ = std::async(when, [this, &chunk = chunks_[parsed_++ % 2]] { parser_.next(chunk); });
}

void TextSource::fail(const Record& record, const std::string& what) const {
  throw Error(path_ + ", line " + std::to_string(record.line) + " (event " +
              std::to_string(events_before_ + events_.size()) + "): " + what);
}

// Keeps the records that were read ahead and appends chunks. False when nothing is left to emit.
bool TextSource::refill() {
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

void TextSource::append(const Chunk& chunk) {
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

std::span<const Event> TextSource::next() {
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

void TextSource::emit(Record& record, std::size_t index, int depth) {
  // A pulled record takes the time of the record that needs it.
  if (depth == 0) {
    if (record.time_ns < time_ns_) {
      fail(record, "the time goes back to " + std::to_string(record.time_ns) + " ns behind " +
                       std::to_string(time_ns_) +
                       " ns, by more than the 262,144 lines that are put in order; sort the lines by their time");
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
    if (record.kind == Kind::reallocate) event.old_block = take_block(record, index, extra.old_address, depth);
    free_extras_.push_back(record.extra);
  }
  if (record.kind == Kind::free) {
    event.block = take_block(record, index, record.address, depth);
  } else if (gives_block(record.kind)) {
    give_block(record, index, depth);
    event.block = next_block_++;
    event.address = record.address;
  }
  event.time_ns = time_ns_;
  events_.push_back(event);
}

std::uint64_t TextSource::take_block(const Record& record, std::size_t index, std::uint64_t address, int depth) {
  std::uint64_t block = 0;
  if (blocks_.take(address, block)) return block;
  if (pull_forward(record, index, address, false, depth) && blocks_.take(address, block)) {
    ++allocations_pulled_;
    return block;
  }
  fail(record, "a free of nothing: no block is live at " + hex(address) +
                   ", and no other thread allocates one there within 16,384 lines");
}

void TextSource::give_block(const Record& record, std::size_t index, int depth) {
  if (blocks_.insert(record.address, next_block_)) return;
  // The pulled free is an event before this one; a pulled realloc may even give a block, so the id is taken afterwards.
  if (pull_forward(record, index, record.address, true, depth) && blocks_.insert(record.address, next_block_)) {
    ++frees_pulled_;
    return;
  }
  fail(record, "a block is allocated twice: " + hex(record.address) +
                   " is still live, and no other thread frees it within 16,384 lines");
}

// Emits the next line that names the address, if it is of the wanted kind and another thread's. A thread's own lines
// are in its own order, so they can't explain anything.
bool TextSource::pull_forward(const Record& record, std::size_t index, std::uint64_t address, bool wanted_free,
                              int depth) {
  if (depth == deepest_pull) return false;
  const std::size_t stop = std::min(window_.size(), index + pulled_lines);
  for (std::size_t i = index + 1; i < stop; ++i) {
    Record& ahead = window_[i];
    if (ahead.done) continue;
    const bool takes = ahead.kind == Kind::free
                           ? ahead.address == address
                           : ahead.kind == Kind::reallocate && extras_[ahead.extra].old_address == address;
    const bool gives = gives_block(ahead.kind) && ahead.address == address;
    if (!takes && !gives) continue;
    if (ahead.thread == record.thread || (wanted_free ? !takes : takes)) return false;
    emit(ahead, i, depth + 1);
    return true;
  }
  return false;
}

void TextSource::conclude() {
  if (concluded_) return;
  concluded_ = true;
  if (cut_) {
    notes_.emplace_back("its compressed stream is cut off, and the events behind that are missing");
  } else if (torn_) {
    notes_.emplace_back("its end is cut off in the midst of an event, which was left out");
  }
  if (times_back_ != 0) {
    notes_.push_back(plural(times_back_, "line stood", "lines stood") + " behind a later time and " +
                     (times_back_ == 1 ? "was" : "were") + " put in order, within 262,144 lines");
  }
  if (frees_pulled_ != 0) {
    notes_.push_back(plural(frees_pulled_, "free stood", "frees stood") +
                     " behind another thread's allocation of the same address and " +
                     (frees_pulled_ == 1 ? "was" : "were") + " put before it");
  }
  if (allocations_pulled_ != 0) {
    notes_.push_back(plural(allocations_pulled_, "allocation stood", "allocations stood") +
                     " behind another thread's free of it and " + (allocations_pulled_ == 1 ? "was" : "were") +
                     " put before it");
  }
}

bool keeps_addresses(const Source& source) {
  const auto* const text = dynamic_cast<const TextSource*>(&source);
  return text != nullptr ? text->asks_for_addresses() : source.header().has_addresses;
}

}  // namespace blockyard::journal
