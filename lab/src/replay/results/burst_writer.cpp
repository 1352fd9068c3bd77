#include "replay/results/burst_writer.hpp"

#include <algorithm>

#include "replay/results/npy.hpp"

namespace blockyard::replay {
namespace {

/// A row of bursts.npy.
struct [[gnu::packed]] BurstRow {
  std::uint32_t event;   ///< the last one's number in the journal
  std::uint32_t events;  ///< how many the burst has
  std::uint32_t frame;   ///< frames ended before the last event
  std::uint16_t thread;  ///< index of the journal's thread
  std::uint16_t cause;   ///< bits of samples::cause
  std::uint64_t start;   ///< ns since the replay's clock started
  std::uint64_t ns;      ///< without the timer's floor, and without `away`
  std::uint32_t away;    ///< ns in which the machine kept the thread from running
};
constexpr const char* burst_descr =
    "[('event', '<u4'), ('events', '<u4'), ('frame', '<u4'), ('thread', '<u2'), ('cause', '<u2'), "
    "('start', '<u8'), ('ns', '<u8'), ('away', '<u4')]";

// How many rows there will be is known at the end: the header has room for any number.
std::string header_of(std::uint64_t rows) {
  std::string header = npy_header(burst_descr, rows);
  const std::size_t longest = npy_header(burst_descr, ~std::uint64_t{0}).size();
  header.insert(header.size() - 1, longest - header.size(), ' ');
  constexpr std::size_t length_at = 8;
  constexpr std::size_t preface = 10;
  header[length_at] = static_cast<char>((longest - preface) & 0xff);
  header[length_at + 1] = static_cast<char>((longest - preface) >> 8);
  return header;
}

}  // namespace

BurstWriter::BurstWriter(const std::string& folder, const PlanFile& plan, const Session& session)
    : session_(session), frames_(plan.frames()), file_(folder + "/bursts.npy"), cursors_(session.threads.size()) {
  const std::string header = header_of(0);
  file_.write(header.data(), header.size());
}

std::uint64_t BurstWriter::advance(std::uint64_t most) {
  std::uint64_t passed = 0;
  for (std::size_t index = 0; index < cursors_.size(); ++index) {
    const ReplayThread& thread = session_.threads[index];
    Cursor& cursor = cursors_[index];
    const std::uint64_t done = thread.progress.done.load(std::memory_order_acquire);
    for (; cursor.next < done && passed < most; ++cursor.next, ++passed) pass(cursor, thread);
  }
  return passed;
}

void BurstWriter::pass(Cursor& cursor, const ReplayThread& thread) {
  const Record& record = thread.record(cursor.next);
  const bool apart = record.kind == kind_burst_end_apart;
  if (record.kind < first_special_kind && !apart) ++cursor.events;
  if (record.kind != kind_burst_end && !apart) return;
  // The end of a frame has the number of its mark, and belongs to what is before it.
  const std::uint32_t event = record.event - (apart && record.event != 0 ? 1 : 0);
  const auto frame = std::lower_bound(frames_.begin(), frames_.end(), event) - frames_.begin();
  const BurstRow row{
      event,
      cursor.events,
      static_cast<std::uint32_t>(frame),
      static_cast<std::uint16_t>(thread.journal_thread),
      record.cause,
      session_.ns(record.burst.start),
      session_.ns(record.burst.ticks),
      static_cast<std::uint32_t>(std::min<std::uint64_t>(session_.ns(record.size_low), ~std::uint32_t{0}))};
  file_.write(&row, sizeof row);
  ++rows_;
  ticks_ += record.burst.ticks;
  cursor.events = 0;
}

void BurstWriter::finish() {
  advance(~std::uint64_t{0});
  const std::string header = header_of(rows_);
  file_.write_at(0, header.data(), header.size());
  file_.commit();
}

}  // namespace blockyard::replay
