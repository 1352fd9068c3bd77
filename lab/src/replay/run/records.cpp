#include "replay/run/records.hpp"

#include <algorithm>
#include <bit>

namespace blockyard::replay {
namespace {

constexpr std::uint64_t least_capacity = 2 * chunk_ops;
constexpr std::uint64_t whole = ~std::uint64_t{0};  // the mask of a ring that holds all of its thread's records

Record record_of(const Op& op) {
  return {.event = op.event,
          .size_low = op.size_low,
          .size_high = op.size_high,
          .kind = op.kind,
          .alignment_log2 = op.alignment_log2,
          .delta_ns = op.delta_ns,
          .order = {op.slot, op.after}};
}

}  // namespace

Records::Records(const PlanFile& plan, std::uint64_t most_bytes)
    : plan_(plan), chunk_(std::make_unique<Op[]>(chunk_ops)) {
  std::uint64_t ops = 0;
  for (const PlanThread& thread : plan.threads())
    ops += thread.ops + 1;  // and one of zeros, which prefetching may read
  const std::uint64_t most = most_bytes / sizeof(Record);
  std::uint64_t taken = 0;
  std::size_t chunk = 0;
  for (const PlanThread& thread : plan.threads()) {
    Ring ring;
    ring.capacity = thread.ops + 1;
    ring.mask = whole;
    if (ops > most) {
      const double share = static_cast<double>(thread.ops) / static_cast<double>(ops);
      const auto fits = static_cast<std::uint64_t>(share * static_cast<double>(most));
      const std::uint64_t room = std::max(std::bit_floor(fits), least_capacity);
      if (room < ring.capacity) {
        ring.capacity = room;
        ring.mask = room - 1;
        streamed_ = true;
      }
    }
    ring.next_chunk = chunk;
    ring.end_chunk = chunk += thread.chunks;
    taken += ring.capacity;
    rings_.push_back(ring);
  }
  if (streamed_) grow(most, taken);
  std::size_t records = 0;
  for (Ring& ring : rings_) {
    ring.first_record = records;
    records += ring.capacity;
  }
  memory_ = PopulatedMemory(records * sizeof(Record));
}

// Powers of two leave up to half of the memory unused. The smallest rings get it: a thread with few events may then
// have all of them at once, and a thread that catches up with the clock runs through a ring of 8192 in less than a
// millisecond.
void Records::grow(std::uint64_t most, std::uint64_t taken) {
  for (;;) {
    Ring* least = nullptr;
    for (Ring& ring : rings_) {
      const bool fits = ring.mask != whole && taken + ring.capacity <= most;
      if (fits && (least == nullptr || ring.capacity < least->capacity)) least = &ring;
    }
    if (least == nullptr) return;
    const std::uint64_t needed = plan_.threads()[static_cast<std::size_t>(least - rings_.data())].ops + 1;
    const std::uint64_t room = 2 * least->capacity;
    taken += std::min(room, needed) - least->capacity;
    least->capacity = std::min(room, needed);
    least->mask = room < needed ? room - 1 : whole;
  }
}

void Records::attach(std::span<ReplayThread> threads) {
  for (std::size_t index = 0; index < threads.size(); ++index) {
    threads[index].records = reinterpret_cast<Record*>(memory_.begin()) + rings_[index].first_record;
    threads[index].mask = rings_[index].mask;
    threads[index].count = plan_.threads()[index].ops;
  }
}

std::uint64_t Records::fill(ReplayThread& thread, std::uint64_t released) {
  Ring& ring = rings_[thread.index];
  const std::uint64_t before = ring.filled;
  while (ring.next_chunk != ring.end_chunk) {
    const std::uint64_t ops = plan_.ops_in_chunk(ring.next_chunk);
    const std::uint64_t behind = ring.next_chunk + 1 == ring.end_chunk ? 1 : 0;  // the record of zeros
    if (ring.filled + ops + behind > released + ring.capacity) break;
    plan_.read_chunk(ring.next_chunk++, chunk_.get());
    for (std::uint64_t i = 0; i < ops; ++i) thread.record(ring.filled++) = record_of(chunk_[i]);
  }
  if (ring.filled == before) return 0;
  if (ring.next_chunk == ring.end_chunk) {
    thread.record(ring.filled) = Record{};
    thread.published.store(ring.filled, std::memory_order_release);
  } else {
    thread.published.store(ring.filled - 1, std::memory_order_release);  // a thread looks one record ahead
  }
  return ring.filled - before;
}

bool Records::runs_low(const ReplayThread& thread) const {
  const Ring& ring = rings_[thread.index];
  if (ring.next_chunk == ring.end_chunk) return false;
  return ring.filled - thread.progress.done.load(std::memory_order_relaxed) < ring.capacity / 2;
}

}  // namespace blockyard::replay
