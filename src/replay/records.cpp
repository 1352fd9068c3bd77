#include "replay/records.hpp"

#include <algorithm>
#include <bit>

namespace blockyard::replay {
namespace {

constexpr std::uint64_t least_capacity = 2 * chunk_ops;

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
  std::size_t records = 0;
  std::size_t chunk = 0;
  for (const PlanThread& thread : plan.threads()) {
    Ring ring;
    ring.first_record = records;
    ring.capacity = thread.ops + 1;
    ring.mask = ~std::uint64_t{0};
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
    records += ring.capacity;
    rings_.push_back(ring);
  }
  memory_ = PopulatedMemory(records * sizeof(Record));
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
