#include "replay/results.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>
#include <queue>
#include <utility>

#include "replay/npy.hpp"
#include "replay/output_file.hpp"

namespace blockyard::replay {
namespace {

struct [[gnu::packed]] SampleRow {
  std::uint32_t event;
  std::uint8_t kind;
  std::uint8_t cause;
  std::uint16_t thread;
  std::uint64_t size;
  std::uint64_t start;
  std::uint32_t call;
  std::uint32_t touch;
  std::uint32_t frame;
};
static_assert(sizeof(SampleRow) == 36);

constexpr const char* sample_fields =
    "[('event', '<u4'), ('kind', '|u1'), ('cause', '|u1'), ('thread', '<u2'), ('size', '<u8'), ('start', '<u8'), "
    "('call', '<u4'), ('touch', '<u4'), ('frame', '<u4')]";
constexpr const char* memory_fields = "[('time', '<u8'), ('resident', '<u8'), ('live', '<u8')]";

// Where the merge stands in one thread's records.
struct Cursor {
  const ReplayThread* thread;
  std::uint64_t next = 0;
  std::uint64_t plan_ns = 0;

  // Passes pauses. False at the end.
  bool settle() {
    while (next < thread->count && thread->records[next].kind == kind_pause) plan_ns += thread->records[next++].size();
    return next < thread->count;
  }
  [[nodiscard]] std::uint32_t event() const { return thread->records[next].event; }
};

}  // namespace

void LatenessHistogram::add(std::uint64_t ns) {
  const unsigned exponent = static_cast<unsigned>(std::bit_width(ns >> sub_bits));
  // Below 2^sub_bits each value has its own bucket; above, each octave has 2^sub_bits of them, the upper half of a
  // width.
  const std::size_t bucket =
      exponent == 0 ? ns : (std::size_t{exponent} << sub_bits) + ((ns >> (exponent - 1)) & ((1u << sub_bits) - 1));
  ++buckets_[std::min(bucket, bucket_count - 1)];
  ++count_;
  max_ = std::max(max_, ns);
}

std::uint64_t LatenessHistogram::percentile(double fraction) const {
  if (count_ == 0) return 0;
  const auto wanted = static_cast<std::uint64_t>(std::ceil(fraction * static_cast<double>(count_)));
  std::uint64_t seen = 0;
  for (std::size_t bucket = 0; bucket < bucket_count; ++bucket) {
    seen += buckets_[bucket];
    if (seen < wanted || seen == 0) continue;
    const std::size_t exponent = bucket >> sub_bits;
    const std::size_t sub = bucket & ((1u << sub_bits) - 1);
    if (exponent == 0) return sub;
    const std::uint64_t begin = ((std::uint64_t{1} << sub_bits) | sub) << (exponent - 1);
    return std::min(max_, begin + (std::uint64_t{1} << (exponent - 1)) - 1);
  }
  return max_;
}

LatenessHistogram write_samples(const std::string& folder, const PlanFile& plan, const Session& session) {
  OutputFile file(folder + "/samples.npy");
  const std::string header = npy_header(sample_fields, plan.header().measured_events);
  file.write(header.data(), header.size());
  LatenessHistogram lateness;

  std::vector<Cursor> cursors;
  using Next = std::pair<std::uint32_t, std::uint32_t>;  // event, cursor
  std::priority_queue<Next, std::vector<Next>, std::greater<>> queue;
  for (const ReplayThread& thread : session.threads) {
    Cursor cursor{&thread};
    if (cursor.settle()) queue.emplace(cursor.event(), static_cast<std::uint32_t>(cursors.size()));
    cursors.push_back(cursor);
  }
  const std::span<const std::uint32_t> frames = plan.frames();
  std::size_t frame = 0;
  while (!queue.empty()) {
    Cursor& cursor = cursors[queue.top().second];
    const std::uint32_t index = queue.top().second;
    queue.pop();
    const std::uint32_t others = queue.empty() ? none : queue.top().first;
    bool more = true;
    do {  // this thread's events up to the next one of another's
      const Record& record = cursor.thread->records[cursor.next];
      while (frame < frames.size() && frames[frame] < record.event) ++frame;
      SampleRow row{};
      row.event = record.event;
      row.kind = record.kind;
      row.thread = static_cast<std::uint16_t>(cursor.thread->journal_thread);
      row.size = record.size();
      row.start = static_cast<std::uint64_t>(static_cast<double>(record.outcome.start) / session.ticks_per_ns);
      row.call = record.outcome.call;
      row.touch = record.outcome.touch;
      row.frame = static_cast<std::uint32_t>(frame);
      file.write(&row, sizeof row);
      cursor.plan_ns += record.delta_ns;
      if (session.ticks_per_plan_ns != 0) {
        const auto due = static_cast<std::uint64_t>(static_cast<double>(cursor.plan_ns) * session.ticks_per_plan_ns);
        const std::uint64_t late = record.outcome.start > due ? record.outcome.start - due : 0;
        lateness.add(static_cast<std::uint64_t>(static_cast<double>(late) / session.ticks_per_ns));
      }
      ++cursor.next;
      more = cursor.settle();
    } while (more && cursor.event() < others);
    if (more) queue.emplace(cursor.event(), index);
  }
  file.commit();
  return lateness;
}

void write_memory(const std::string& folder, std::span<const MemoryRow> rows) {
  OutputFile file(folder + "/memory.npy");
  const std::string header = npy_header(memory_fields, rows.size());
  file.write(header.data(), header.size());
  file.write(rows.data(), rows.size_bytes());
  file.commit();
}

}  // namespace blockyard::replay
