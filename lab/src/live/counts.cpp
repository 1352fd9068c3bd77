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
  StackCounts& counts = stacks_[stack];
  live_.add(event.block, {event.size, static_cast<std::uint32_t>(stack), event.tag});
  ++counts.live_blocks;
  counts.live_bytes += event.size;
  ++held_.blocks;
  held_.bytes += event.size;
  if (event.tag != 0) {
    if (event.tag >= tags_.size()) tags_.resize(event.tag + 1);
    ++tags_[event.tag].live.blocks;
    tags_[event.tag].live.bytes += event.size;
  }
  peak_bytes_ = std::max(peak_bytes_, held_.bytes);
  // A long preamble is in the file before its length is; it has the journal's first moment to itself.
  if (events_ <= preamble_ || event.time_ns == 0) return;
  if (mark_block_ == no_mark && event.time_ns >= mark_ns_) mark_block_ = event.block;
  if (event.block >= mark_block_) {
    if (stack >= since_mark_.size()) since_mark_.resize(stacks_.size());
    ++since_mark_[stack].blocks;
    since_mark_[stack].bytes += event.size;
  }
  if (event.thread >= threads_.size()) threads_.resize(event.thread + 1);
  Calls& thread = threads_[event.thread];
  ++thread.allocations;
  thread.bytes += event.size;
  if (event.tag != 0) {
    ++tags_[event.tag].calls.allocations;
    tags_[event.tag].calls.bytes += event.size;
  }
  ++counts.allocations;
  counts.bytes += event.size;
  counts.has_allocated = true;
  if (marks_frames() && (event.thread != frame_thread_ || frame_.number == 0)) return;
  if (counts.frame_place == 0) {
    frame_.sites.push_back({static_cast<std::uint32_t>(stack), 0, 0});
    counts.frame_place = static_cast<std::uint32_t>(frame_.sites.size());
  }
  FrameSite& site = frame_.sites[counts.frame_place - 1];
  ++site.allocations;
  site.bytes += event.size;
  ++frame_.allocations;
  frame_.bytes += event.size;
}

void Counts::release(const Event& event) {
  LiveBlock gone{};
  if (!live_.take(ended_block(event), gone)) {
    throw journal::Error(journal::freed_but_not_live(ended_block(event)));
  }
  StackCounts& counts = stacks_[gone.stack];
  --counts.live_blocks;
  counts.live_bytes -= gone.size;
  --held_.blocks;
  held_.bytes -= gone.size;
  if (gone.tag != 0) {
    TagCounts& tag = tags_[gone.tag];
    --tag.live.blocks;
    tag.live.bytes -= gone.size;
    ++tag.calls.frees;
  }
  if (ended_block(event) >= mark_block_) {
    --since_mark_[gone.stack].blocks;
    since_mark_[gone.stack].bytes -= gone.size;
  } else if (event.time_ns >= mark_ns_) {
    ++older_freed_.blocks;
    older_freed_.bytes += gone.size;
  }
  if (event.thread >= threads_.size()) threads_.resize(event.thread + 1);
  ++threads_[event.thread].frees;
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
  for (const FrameSite& site : frame_.sites) stacks_[site.stack].frame_place = 0;
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
  since_mark_.clear();
}

Calls Counts::window() const {
  Calls sum;
  for (const Calls& one : threads_) sum = sum + one;
  return sum;
}

Calls Counts::all() const { return before_ + window(); }

void Counts::end_window(bool last) {
  last_.resize(stacks_.size());
  for (std::size_t i = 0; i < stacks_.size(); ++i) {
    StackCounts& counts = stacks_[i];
    last_[i] = counts.allocations;
    if (last || counts.allocations == 0) continue;
    counts.allocations = 0;
    counts.bytes = 0;
  }
  if (last) return;
  before_ = all();
  window_begin_ns_ = time_ns_;
  threads_.assign(threads_.size(), {});
  for (TagCounts& tag : tags_) tag.calls = {};
}

}  // namespace blockyard::live
