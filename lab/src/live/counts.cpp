#include "live/counts.hpp"

#include <algorithm>

#include "journal/facts.hpp"

namespace blockyard::live {

using journal::Event;
using journal::Kind;

void Counts::add(const Event& event) {
  ++events_;
  time_ns_ = event.time_ns;
  if (event.kind == Kind::frame_mark) return mark_frame(event);
  if (event.kind == Kind::phase_mark) return;
  if (!marks_frames()) advance_clock(event.time_ns);
  if (takes_block(event.kind)) release(event);
  if (gives_block(event.kind)) give(event);
}

void Counts::advance_clock(std::uint64_t ns) {
  constexpr std::uint64_t length = journal::default_frame_ns;
  const std::uint64_t now = ns / length;
  std::uint64_t at = frame_.begin_ns / length;
  if (at == now) return;
  end_frame(++at * length);
  if (now - at > kept_frames) {  // nobody could look at all frames of a long pause
    at = now - kept_frames;
    frame_.begin_ns = at * length;
  }
  while (at < now) end_frame(++at * length);
}

void Counts::give(const Event& event) {
  const std::size_t stack = event.site == journal::no_site ? 0 : std::size_t{event.site} + 1;
  if (stack >= stacks_.size()) stacks_.resize(std::max(stack + 1, stacks_.size() * 3 / 2));
  if (event.tag >= tags_.size()) tags_.resize(event.tag + 1);
  StackCounts& counts = stacks_[stack];
  TagCounts& tag = tags_[event.tag];
  live_.insert(event.block + 1, {event.size, static_cast<std::uint32_t>(stack), event.tag});
  for (Held* held : {&counts.live, &tag.live, &held_}) {
    ++held->blocks;
    held->bytes += event.size;
  }
  peak_bytes_ = std::max(peak_bytes_, held_.bytes);
  // A long preamble is in the file before its length is; it has the journal's first moment to itself.
  if (events_ <= preamble_ || event.time_ns == 0) return;
  if (mark_block_ == no_mark && event.time_ns >= mark_ns_) mark_block_ = event.block;
  if (event.block >= mark_block_) {
    ++counts.since_mark.blocks;
    counts.since_mark.bytes += event.size;
  }
  if (event.thread >= threads_.size()) threads_.resize(event.thread + 1);
  for (Calls* calls : {&all_, &window_, &threads_[event.thread], &tag.calls}) {
    ++calls->allocations;
    calls->bytes += event.size;
  }
  ++counts.allocations;
  counts.bytes += event.size;
  counts.has_allocated = true;
  if (marks_frames() && (event.thread != frame_thread_ || frame_.number == 0)) return;
  if (counts.frame_allocations++ == 0) frame_stacks_.push_back(static_cast<std::uint32_t>(stack));
  counts.frame_bytes += event.size;
  ++frame_.allocations;
  frame_.bytes += event.size;
}

void Counts::release(const Event& event) {
  Live gone{};
  if (!live_.take(ended_block(event) + 1, gone)) {
    throw journal::Error(journal::freed_but_not_live(ended_block(event)));
  }
  StackCounts& counts = stacks_[gone.stack];
  TagCounts& tag = tags_[gone.tag];
  for (Held* held : {&counts.live, &tag.live, &held_}) {
    --held->blocks;
    held->bytes -= gone.size;
  }
  if (ended_block(event) >= mark_block_) {
    --counts.since_mark.blocks;
    counts.since_mark.bytes -= gone.size;
  } else if (event.time_ns >= mark_ns_) {
    ++older_freed_.blocks;
    older_freed_.bytes += gone.size;
  }
  if (event.thread >= threads_.size()) threads_.resize(event.thread + 1);
  for (Calls* calls : {&all_, &window_, &threads_[event.thread], &tag.calls}) ++calls->frees;
}

void Counts::mark_frame(const Event& event) {
  frame_marks_.add(event);
  const std::uint32_t most = frame_marks_.most().first;
  if (most != frame_thread_) {  // so far another thread, or the clock, made the frames
    frame_thread_ = most;
    end_frame(event.time_ns);
    kept_.clear();
    frames_ = over_ = 0;
    frame_.number = 1;
    return;
  }
  if (event.thread == frame_thread_) end_frame(event.time_ns);
}

void Counts::end_frame(std::uint64_t ns) {
  frame_.length_ns = ns - frame_.begin_ns;
  frame_.number = ++frames_;
  if (marks_frames() && frame_.length_ns > budget_ns_) ++over_;
  for (const std::uint32_t stack : frame_stacks_) {
    StackCounts& counts = stacks_[stack];
    frame_.sites.push_back({stack, counts.frame_allocations, counts.frame_bytes});
    counts.frame_allocations = 0;
    counts.frame_bytes = 0;
  }
  frame_stacks_.clear();
  const auto more = [](const FrameSite& a, const FrameSite& b) { return a.allocations > b.allocations; };
  if (frame_.sites.size() > frame_sites) {
    std::nth_element(frame_.sites.begin(), frame_.sites.begin() + frame_sites, frame_.sites.end(), more);
    frame_.sites.resize(frame_sites);
    frame_.sites.shrink_to_fit();
  }
  kept_.push_back(std::move(frame_));
  if (kept_.size() > kept_frames) kept_.pop_front();
  frame_ = {};
  frame_.number = 1;
  frame_.begin_ns = ns;
}

void Counts::mark(std::uint64_t ns) {
  mark_ns_ = ns;
  mark_block_ = no_mark;
  older_freed_ = {};
  for (StackCounts& counts : stacks_) counts.since_mark = {};
}

void Counts::end_window(bool last) {
  for (StackCounts& counts : stacks_) counts.last_allocations = counts.allocations;
  if (last) return;
  window_begin_ns_ = time_ns_;
  window_ = {};
  threads_.assign(threads_.size(), {});
  for (TagCounts& tag : tags_) tag.calls = {};
  for (StackCounts& counts : stacks_) {
    counts.allocations = 0;
    counts.bytes = 0;
  }
}

}  // namespace blockyard::live
