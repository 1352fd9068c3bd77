// What a program that runs allocates: events added up as they come, in memory that its live blocks and stacks need.
#pragma once

#include <cstdint>
#include <deque>
#include <limits>
#include <vector>

#include "journal/event.hpp"
#include "journal/frame_marks.hpp"
#include "live/live_blocks.hpp"

namespace blockyard::live {

struct Calls {
  std::uint64_t allocations = 0;
  std::uint64_t bytes = 0;  ///< requested
  std::uint64_t frees = 0;
};

inline Calls operator+(const Calls& one, const Calls& other) {
  return {one.allocations + other.allocations, one.bytes + other.bytes, one.frees + other.frees};
}

struct Held {
  std::uint64_t blocks = 0;
  std::uint64_t bytes = 0;
};

/// What one call stack did. Half a cache line: an event touches one of them.
struct alignas(32) StackCounts {
  std::uint64_t live_bytes = 0;
  std::uint64_t bytes = 0;  ///< since the last report
  std::uint32_t live_blocks = 0;
  std::uint32_t allocations = 0;  ///< since the last report
  std::uint32_t frame_place = 0;  ///< in the frame that has not ended: the place of its site there, plus one
  bool has_allocated = false;     ///< most stacks are parts of others, or of frees
};

struct FrameSite {
  std::uint32_t stack;  ///< a node, plus one
  std::uint32_t allocations;
  std::uint64_t bytes;
};

/// One frame of the thread that marks frames, and what that thread allocated in it. Without marks it is a sixtieth of a
/// second of all threads.
struct Frame {
  std::uint64_t number = 0;  ///< from 1
  std::uint64_t begin_ns = 0;
  std::uint64_t length_ns = 0;
  std::uint64_t allocations = 0;
  std::uint64_t bytes = 0;
  std::vector<FrameSite> sites;  ///< those that allocated most, at most Counts::frame_sites
};

struct TagCounts {
  Calls calls;  ///< since the last report
  Held live;
};

/// Adds events up. One thread at a time; O(1) per event. Memory: 16 MiB, 24 bytes for each live block that is
/// old, up to 52 for each call stack, and the last kept_frames frames.
class Counts {
 public:
  static constexpr std::size_t kept_frames = 1024;
  static constexpr std::size_t frame_sites = 64;
  static constexpr std::uint64_t no_mark = std::numeric_limits<std::uint64_t>::max();

  explicit Counts(std::uint64_t budget_ns) : budget_ns_(budget_ns) {}

  /// Some events before an event is added, and again half as many before: a block's stack is known when its slot came.
  void prefetch(const journal::Event& event) const {
    if (takes_block(event.kind)) live_.prefetch_take(ended_block(event));
    if (!gives_block(event.kind)) return;
    live_.prefetch_add(event.block);
    if (event.site + std::size_t{1} < stacks_.size()) __builtin_prefetch(&stacks_[event.site + std::size_t{1}], 1);
  }
  void prefetch_ended(const journal::Event& event) {
    if (!takes_block(event.kind)) return;
    const LiveBlock* const block = live_.find(ended_block(event));
    if (block != nullptr) __builtin_prefetch(&stacks_[block->stack], 1);
  }
  void add(const journal::Event& event);
  /// The journal's first so many events restore blocks: they are held, and nobody allocated them now.
  void set_preamble(std::uint64_t events) { preamble_ = events; }
  /// From the first event at or after `ns` on, stacks count what stays since then.
  void mark(std::uint64_t ns);
  /// A report was made of what was counted since the one before; unless `last`, that begins anew.
  void end_window(bool last);

  std::uint64_t events() const { return events_; }
  std::uint64_t time_ns() const { return time_ns_; }
  std::uint64_t window_ns() const { return time_ns_ - window_begin_ns_; }
  Calls all() const;
  Calls window() const;  ///< since the last report
  const Held& live() const { return held_; }
  std::uint64_t peak_bytes() const { return peak_bytes_; }
  bool marks_frames() const { return frame_thread_ != journal::FrameMarks::no_thread; }
  std::uint64_t frame_count() const { return frames_; }
  std::uint64_t over_budget() const { return over_; }
  const std::deque<Frame>& frames() const { return kept_; }
  const std::vector<StackCounts>& stacks() const { return stacks_; }  ///< by node, plus one; 0 has none
  /// Of a stack: its allocations between the last two reports; what is alive of it and was allocated since the mark.
  std::uint32_t last_allocations(std::size_t stack) const { return stack < last_.size() ? last_[stack] : 0; }
  Held since_mark(std::size_t stack) const { return stack < since_mark_.size() ? since_mark_[stack] : Held(); }
  const std::vector<Calls>& threads() const { return threads_; }  ///< since the last report
  const std::vector<TagCounts>& tags() const { return tags_; }
  /// The journal's time of the mark; no_mark without one.
  std::uint64_t mark_ns() const { return mark_ns_; }
  /// Blocks from before the mark that ended since.
  const Held& older_freed() const { return older_freed_; }

 private:
  void give(const journal::Event& event);
  void release(const journal::Event& event);
  void end_frame(std::uint64_t ns);
  void advance_clock(std::uint64_t ns);
  void mark_frame(const journal::Event& event);

  std::uint64_t budget_ns_;
  std::uint64_t preamble_ = 0;
  std::uint64_t events_ = 0;
  std::uint64_t time_ns_ = 0;
  std::uint64_t window_begin_ns_ = 0;
  std::uint64_t peak_bytes_ = 0;
  Calls before_;  ///< before this window
  Held held_;
  LiveBlocks live_;
  std::vector<StackCounts> stacks_{1};
  std::vector<std::uint32_t> last_;
  std::vector<Held> since_mark_;
  std::vector<Calls> threads_;
  std::vector<TagCounts> tags_;

  journal::FrameMarks frame_marks_;
  std::uint32_t frame_thread_ = journal::FrameMarks::no_thread;
  std::uint64_t frames_ = 0;
  std::uint64_t over_ = 0;
  Frame frame_;  ///< the one that has not ended, with all its sites; its number is 0 before the first mark
  std::deque<Frame> kept_;

  std::uint64_t mark_ns_ = no_mark;
  std::uint64_t mark_block_ = no_mark;  ///< the first block after the mark
  Held older_freed_;
};

}  // namespace blockyard::live
