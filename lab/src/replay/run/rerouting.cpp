#include "replay/run/rerouting.hpp"

#include <algorithm>
#include <new>

#include "blockyard/block.h"
#include "replay/run/failure.hpp"

namespace blockyard::replay {
namespace {

using journal::RouteKind;

constexpr std::uint64_t least_region = 64;

bool is_temp(RouteKind kind) { return kind == RouteKind::temp || kind == RouteKind::temp_scope; }
bool has_buffers(RouteKind kind) { return kind == RouteKind::reserve || kind == RouteKind::keep; }

// A program sizes its threads' regions for all that it puts there. What needs more is to be counted, so that regions do
// not grow. Without an advised size they are the library's own.
void configure_temp(std::span<const PlanRoute> routes) {
  std::uint64_t bytes = 0;
  for (const PlanRoute& route : routes) {
    if (route.blocks != 0 && is_temp(static_cast<RouteKind>(route.kind))) bytes += route.bytes;
  }
  if (bytes == 0) return;
  const std::uint64_t region = std::clamp<std::uint64_t>(bytes, least_region, lifetime::most_region_bytes);
  by_temp_configure(region, region);
}

}  // namespace

void route_out_of_memory(std::uint32_t event, std::uint64_t size) {
  fail_run(SafeText() << "the library ran out of memory for the rerouted block of event " << std::uint64_t{event}
                      << ", which asks for " << size << " bytes");
}

Rerouting::Rerouting(const PlanFile& plan, const Session& session)
    : routes_of_groups_(plan.routes_of_groups()),
      threads_(session.threads.size()),
      slots_(plan.header().slots),
      route_memory_(plan.routes().size() * sizeof(RunRoute)),
      part_memory_(session.threads.size() * plan.routes().size() * sizeof(RoutePart)),
      routes_(reinterpret_cast<RunRoute*>(route_memory_.begin()), plan.routes().size()),
      parts_(reinterpret_cast<RoutePart*>(part_memory_.begin())),
      totals_(plan.routes().size()) {
  bool buffers = false;
  for (std::size_t index = 0; index < routes_.size(); ++index) {
    const PlanRoute& from = plan.routes()[index];
    RunRoute& route = *new (&routes_[index]) RunRoute;
    route.kind = static_cast<RouteKind>(from.kind);
    route.bytes = from.bytes;
    route.generations = plan.generations().subspan(from.first_generation, from.generations);
    if (from.blocks == 0) continue;  // nothing goes there
    buffers |= has_buffers(route.kind);
    if (route.kind == RouteKind::block_pool) route.pool = {from.bytes, std::size_t{1} << from.alignment_log2};
    if (route.kind == RouteKind::rewindable) {
      route.arena = by_rewindable_create(from.bytes, nullptr);
      if (route.arena == nullptr) throw journal::Error("there is no memory for the arena of a rewindable route");
    }
  }
  for (std::size_t index = 0; index < threads_ * routes_.size(); ++index) new (&parts_[index]) RoutePart;
  if (buffers) {
    buffer_memory_ = PopulatedMemory(slots_ * sizeof(Buffer));
    buffers_ = reinterpret_cast<Buffer*>(buffer_memory_.begin());
    for (std::size_t slot = 0; slot < slots_; ++slot) new (&buffers_[slot]) Buffer;
  }
  configure_temp(plan.routes());
}

Rerouting::~Rerouting() {
  for (const RunRoute& route : routes_) by_rewindable_destroy(route.arena);
}

bool Rerouting::release(const Session& session, Slot& slot) const {
  const auto index = static_cast<std::size_t>(&slot - session.slots);
  const std::uint32_t number = routes_of_groups_[index / slot_group];
  if (number == none) return false;
  const RunRoute& route = routes_[number];
  switch (route.kind) {
    case RouteKind::block_pool:
      route.pool.free(slot.block);
      break;
    case RouteKind::reserve:
    case RouteKind::keep: {
      const by_adapter& calls = *session.adapter;
      const Buffer& buffer = buffers_[index];
      if ((calls.flags & BY_ADAPTER_SIZED_FREE) != 0) {
        calls.free_sized(slot.block, buffer.bytes, std::size_t{1} << buffer.alignment_log2);
      } else {
        calls.free(slot.block);
      }
      break;
    }
    case RouteKind::temp:
    case RouteKind::temp_scope:
    case RouteKind::temp_job:
    case RouteKind::rewindable:
      break;  // the first three have freed all blocks, and the arena ends with the run
  }
  slot.block = nullptr;
  return true;
}

void Rerouting::surrender_kept(const Session& session) const {
  for (std::size_t slot = 0; buffers_ != nullptr && slot < slots_; ++slot) {
    Buffer& buffer = buffers_[slot];
    if (buffer.kept == nullptr || session.slots[slot].block != nullptr) continue;
    session.slots[slot].block = buffer.kept;
    session.slots[slot].size = 0;
    buffer.kept = nullptr;
  }
}

void Rerouting::note_peaks() {
  by_thread_end_frame();  // of the main thread: its last frame counts too
  for (std::size_t index = 0; index < routes_.size(); ++index) {
    RouteTotals& total = totals_[index];
    total.region_peak_bytes = std::max(total.region_peak_bytes, peak_of(routes_[index]));
    total.overflowed = 0;
    for (std::size_t thread = 0; thread < threads_; ++thread) total.overflowed += parts(thread)[index].overflowed;
  }
}

std::uint64_t Rerouting::peak_of(const RunRoute& route) const {
  switch (route.kind) {
    case RouteKind::temp:
    case RouteKind::temp_scope:
    case RouteKind::temp_job: {
      by_lifetime_statistics all{};
      by_lifetime_get_statistics(&all);
      return is_temp(route.kind) ? all.temp.peak_bytes : all.temp_job_peak_bytes;
    }
    case RouteKind::block_pool: {
      if (route.pool.stride() == 0) return 0;
      by_block_statistics pool{};
      by_static_block_get_statistics(route.pool.stride(), &pool);
      return pool.peak_blocks * pool.block_bytes;
    }
    case RouteKind::rewindable: {
      if (route.arena == nullptr) return 0;
      by_rewindable_statistics arena{};
      by_rewindable_get_statistics(route.arena, &arena);
      return arena.peak_used_bytes;
    }
    case RouteKind::reserve:
    case RouteKind::keep:
      break;
  }
  return 0;
}

}  // namespace blockyard::replay
