#include "replay/results/sample_writer.hpp"

#include <algorithm>
#include <functional>

#include "journal/event.hpp"
#include "replay/results/npy.hpp"
#include "samples/row.hpp"

namespace blockyard::replay {
static_assert(samples::kind_free == static_cast<std::uint8_t>(journal::Kind::free));
static_assert(samples::kind_reallocate == static_cast<std::uint8_t>(journal::Kind::reallocate));

namespace {

/// A row of frame_ends.npy.
struct [[gnu::packed]] FrameEndRow {
  std::uint32_t event;   ///< number of the frame mark in the journal
  std::uint32_t thread;  ///< the journal's, whose temp memory ended
  std::uint64_t start;   ///< ns since the replay's clock started
  std::uint32_t call;    ///< ticks, including the timer's floor; the largest value means at least that
};
constexpr const char* frame_end_descr = "[('event', '<u4'), ('thread', '<u4'), ('start', '<u8'), ('call', '<u4')]";

}  // namespace

SampleWriter::SampleWriter(const std::string& folder, const PlanFile& plan, const Session& session)
    : session_(session), frames_(plan.frames()), file_(folder + "/samples.npy") {
  const std::string header = npy_header(samples::row_descr, plan.header().measured_events);
  file_.write(header.data(), header.size());
  if (plan.header().frame_ends != 0) {
    const std::string frame_ends = npy_header(frame_end_descr, plan.header().frame_ends);
    frame_ends_.emplace(folder + "/frame_ends.npy").write(frame_ends.data(), frame_ends.size());
  }
  queue_.reserve(session.threads.size());
  for (const ReplayThread& thread : session.threads) {
    cursors_.push_back({&thread});
    enqueue(static_cast<std::uint32_t>(cursors_.size() - 1));
  }
}

// A thread's next record is always in place, finished or not: the reader stays ahead of what is published.
void SampleWriter::enqueue(std::uint32_t index) {
  const Cursor& cursor = cursors_[index];
  if (cursor.next == cursor.thread->count) return;
  queue_.emplace_back(cursor.thread->record(cursor.next).event, index);
  std::push_heap(queue_.begin(), queue_.end(), std::greater<>());
}

std::uint64_t SampleWriter::advance(std::uint64_t most) {
  std::uint64_t passed = 0;
  while (!queue_.empty() && passed < most) {
    const std::uint32_t index = queue_.front().second;
    Cursor& cursor = cursors_[index];
    const std::uint64_t done = cursor.thread->progress.done.load(std::memory_order_acquire);
    if (cursor.next == done) break;
    std::pop_heap(queue_.begin(), queue_.end(), std::greater<>());
    queue_.pop_back();
    const std::uint32_t others = queue_.empty() ? none : queue_.front().first;
    do {  // this thread's events up to the next event of another thread
      write(cursor);
      ++cursor.next;
      ++passed;
    } while (cursor.next < done && passed < most && cursor.thread->record(cursor.next).event < others);
    enqueue(index);
  }
  return passed;
}

void SampleWriter::write(Cursor& cursor) {
  const Record& record = cursor.thread->record(cursor.next);
  if (record.kind >= first_special_kind) {
    write_special(cursor, record);
    return;
  }
  while (frame_ < frames_.size() && frames_[frame_] < record.event) ++frame_;
  samples::Row row{};
  row.event = record.event;
  row.kind = record.kind;
  row.cause = record.cause;
  row.thread = static_cast<std::uint16_t>(cursor.thread->journal_thread);
  row.size = record.size();
  row.start = session_.ns(record.outcome.start);
  row.call = record.outcome.call;
  row.touch = record.outcome.touch;
  row.frame = static_cast<std::uint32_t>(frame_);
  file_.write(&row, sizeof row);
  ++totals_.events;
  totals_.call_ticks += record.outcome.call;
  totals_.touch_ticks += record.outcome.touch;
  if (record.outcome.touch != 0) ++totals_.touched;
  if (record.outcome.start < latest_start_) ++totals_.order_inversions;
  latest_start_ = std::max(latest_start_, record.outcome.start);
  cursor.plan_ns += record.delta_ns;
  ++cursor.events;
  if (session_.ticks_per_plan_ns != 0) {
    const auto due = static_cast<std::uint64_t>(static_cast<double>(cursor.plan_ns) * session_.ticks_per_plan_ns);
    const std::uint64_t late = record.outcome.start > due ? record.outcome.start - due : 0;
    const std::uint64_t late_ns = session_.ns(late);
    lateness_.add(late_ns);
    if (late_ns > lost_pace_ns) ++cursor.late;
  }
}

void SampleWriter::write_special(Cursor& cursor, const Record& record) {
  if (record.kind == kind_pause) cursor.plan_ns += record.size();
  if (record.kind != kind_frame_end) return;
  cursor.plan_ns += record.delta_ns;
  const FrameEndRow row{record.event, cursor.thread->journal_thread, session_.ns(record.outcome.start),
                        record.outcome.call};
  frame_ends_->write(&row, sizeof row);
  ++totals_.frame_ends;
  totals_.frame_end_ticks += record.outcome.call;
}

std::uint64_t SampleWriter::interrupted_threads() const {
  return static_cast<std::uint64_t>(std::count_if(
      cursors_.begin(), cursors_.end(), [](const Cursor& cursor) { return cursor.late * 100 > cursor.events; }));
}

LatenessHistogram SampleWriter::finish() {
  advance(~std::uint64_t{0});
  file_.commit();
  if (frame_ends_) frame_ends_->commit();
  return std::move(lateness_);
}

}  // namespace blockyard::replay
