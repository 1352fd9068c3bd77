// Writes journals from merged events.
#include "record/collect/output.hpp"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <limits>

#include "journal/utc_time.hpp"

namespace blockyard::record {
namespace {

constexpr std::uint32_t not_yet = std::numeric_limits<std::uint32_t>::max();

std::string path_of_window(const std::string& first, std::size_t number) {
  if (number == 1) return first;
  const std::filesystem::path path(first);
  return (path.parent_path() / (path.stem().string() + "-" + std::to_string(number) + path.extension().string()))
      .string();
}

}  // namespace

Output::Output(OutputSettings settings, const std::vector<ThreadFacts>& threads)
    : settings_(std::move(settings)), threads_(threads) {}

Output::~Output() = default;

void Output::open_window(std::uint64_t stamp, LiveBlocks& live) {
  if (is_open()) return;
  journals_.emplace_back();
  journals_.back().path = path_of_window(settings_.path, journals_.size());
  origin_ = stamp;
  last_time_ = 0;
  next_block_ = 0;
  thread_index_.clear();
  tag_names_.clear();
  try {
    settings_.header.started_at = journal::utc_now();
    writer_ = std::make_unique<journal::Writer>(journals_.back().path, settings_.header, settings_.overwrite);
    sites_ = std::make_unique<journal::StackSubset>(
        *settings_.stacks, writer_->stacks(),
        static_cast<std::uint64_t>(static_cast<double>(origin_) * settings_.ns_per_stamp));
  } catch (const journal::Error& error) {
    fail(error.what());
    return;
  }
  const auto entries = live.in_order();
  for (const auto& [address, block] : entries) live.find(address)->id = allocate(stamp, address, block);
  journals_.back().preamble = entries.size();
  if (is_open()) writer_->header().preamble_events = entries.size();
}

void Output::close_window(std::uint64_t stamp, bool stopped) {
  if (!is_open()) return;
  JournalSummary& summary = journals_.back();
  summary.seconds = static_cast<double>(std::max(last_time_, time_of(stamp))) * 1e-9;
  try {
    writer_->header().cut_at_end = stopped;
    if (settings_.unseen) writer_->header().unseen = settings_.unseen();
    sites_->finish();
    summary.bytes = writer_->finish();
    writer_.reset();
  } catch (const journal::Error& error) {
    fail(error.what());
  }
}

std::uint64_t Output::time_of(std::uint64_t stamp) const {
  return stamp <= origin_ ? 0
                          : static_cast<std::uint64_t>(static_cast<double>(stamp - origin_) * settings_.ns_per_stamp);
}

std::uint32_t Output::writer_thread(std::uint32_t thread) {
  if (thread >= thread_index_.size()) thread_index_.resize(thread + 1, not_yet);
  std::uint32_t& index = thread_index_[thread];
  if (index == not_yet) {
    index = writer_->add_thread({threads_[thread].tid, threads_[thread].name});
    ++journals_.back().threads;
  }
  return index;
}

std::uint32_t Output::tag_name(std::uint32_t tag) {
  if (tag >= tag_names_.size()) tag_names_.resize(tag + 1, not_yet);
  std::uint32_t& name = tag_names_[tag];
  if (name == not_yet) name = writer_->intern_name(settings_.tags->text(tag));
  return name;
}

void Output::tag_met(std::uint32_t tag) {
  if (is_open()) tag_name(tag);
}

std::uint64_t Output::add(std::uint64_t stamp, journal::Event event, std::uint32_t thread, Origin origin) {
  if (!is_open()) return journal::no_block;
  event.time_ns = std::max(last_time_, time_of(stamp));
  try {
    event.thread = writer_thread(thread);
    event.site = sites_->node(origin.site);
    if (origin.tag != 0) event.tag = tag_name(origin.tag);
    if (journal::gives_block(event.kind)) event.block = next_block_++;
    if (event.kind == journal::Kind::reallocate) {
      event.duration_ns = event.duration_ns > event.time_ns ? event.duration_ns - event.time_ns : 0;
    }
    writer_->add(event);
  } catch (const journal::Error& error) {
    fail(error.what());
    return journal::no_block;
  }
  last_time_ = event.time_ns;
  unflushed_ = true;
  JournalSummary& summary = journals_.back();
  ++summary.events;
  summary.allocations += journal::gives_block(event.kind) ? 1u : 0u;
  summary.frees += journal::takes_block(event.kind) ? 1u : 0u;
  summary.reallocates += event.kind == journal::Kind::reallocate ? 1u : 0u;
  summary.frames += event.kind == journal::Kind::frame_mark ? 1u : 0u;
  return event.block;
}

std::uint64_t Output::allocate(std::uint64_t stamp, std::uint64_t address, const LiveBlock& block) {
  journal::Event event;
  event.kind = block.kind;
  event.size = block.size;
  event.alignment = block.kind == journal::Kind::allocate_aligned ? 1u << block.alignment_log2 : 0;
  event.address = address;
  return add(stamp, event, block.thread, block.origin);
}

void Output::free(std::uint64_t stamp, std::uint32_t thread, std::uint64_t id, Origin origin) {
  if (id == journal::no_block) return;
  journal::Event event;
  event.kind = journal::Kind::free;
  event.block = id;
  add(stamp, event, thread, origin);
}

std::uint64_t Output::reallocate(std::uint64_t begin, std::uint64_t end, std::uint64_t old_id, std::uint64_t address,
                                 const LiveBlock& block) {
  journal::Event event;
  event.kind = journal::Kind::reallocate;
  event.size = block.size;
  event.old_block = old_id;
  event.address = address;
  event.duration_ns = time_of(end);  // add() subtracts the start, which other threads' events may have delayed
  return add(begin, event, block.thread, block.origin);
}

void Output::frame_mark(std::uint64_t stamp, std::uint32_t thread) {
  journal::Event event;
  event.kind = journal::Kind::frame_mark;
  add(stamp, event, thread);
}

void Output::phase_mark(std::uint64_t stamp, std::uint32_t thread, const std::string& name) {
  if (!is_open()) return;
  journal::Event event;
  event.kind = journal::Kind::phase_mark;
  event.tag = writer_->intern_name(name);
  add(stamp, event, thread);
}

void Output::thread_renamed(std::uint32_t thread) {
  if (!is_open() || thread >= thread_index_.size() || thread_index_[thread] == not_yet) return;
  writer_->name_thread(thread_index_[thread], threads_[thread].name);
}

void Output::flush() {
  if (!is_open() || !unflushed_) return;
  unflushed_ = false;
  try {
    writer_->flush();
  } catch (const journal::Error& error) {
    fail(error.what());
  }
}

void Output::fail(const std::string& sentence) {
  journals_.back().error = sentence;
  // Its destructor tries once more to end the file well; what was flushed stays readable in any case.
  writer_.reset();
  std::fprintf(stderr, "blockyard: %s; the program goes on, unrecorded\n", sentence.c_str());
}

}  // namespace blockyard::record
