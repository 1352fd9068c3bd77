#include "replay/plan/route_plan.hpp"

#include <algorithm>
#include <utility>

namespace blockyard::replay {
namespace {

using journal::RouteKind;

constexpr std::size_t most_looked_at = 32;

bool has_room(RouteKind kind) { return kind == RouteKind::reserve || kind == RouteKind::keep; }

template <typename T>
std::string bytes_of(const std::vector<T>& list) {
  return {reinterpret_cast<const char*>(list.data()), list.size() * sizeof(T)};
}

}  // namespace

RoutePlan::RoutePlan(Reroutes reroutes)
    : found_(std::move(reroutes)), growth_(found_.growths), parts_(found_.routes.size()), live_(found_.routes.size()) {}

RoutePlan::Part& RoutePlan::part(std::uint32_t route, std::uint32_t thread) {
  std::vector<Part>& threads = parts_[route];
  if (thread >= threads.size()) threads.resize(thread + std::size_t{1});
  return threads[thread];
}

std::optional<std::uint32_t> RoutePlan::kept_slot(std::uint32_t route, std::uint32_t thread, std::uint64_t size,
                                                  std::uint8_t alignment_log2) {
  if (kind_of(route) != RouteKind::keep) return {};
  std::vector<Kept>& kept = part(route, thread).kept;
  if (kept.empty()) return {};
  const std::size_t oldest = kept.size() - std::min(kept.size(), most_looked_at);
  std::size_t chosen = kept.size() - 1;
  for (std::size_t index = kept.size(); index-- > oldest;) {
    if (*rooms_.find(kept[index].slot + std::uint64_t{1}) >= size && kept[index].alignment_log2 >= alignment_log2) {
      chosen = index;
      break;
    }
  }
  const std::uint32_t slot = kept[chosen].slot;
  kept.erase(kept.begin() + static_cast<std::ptrdiff_t>(chosen));
  return slot;
}

void RoutePlan::came(std::uint32_t route, std::uint32_t thread, std::uint32_t slot, std::uint64_t size,
                     std::uint64_t old_size) {
  const RouteKind kind = kind_of(route);
  live_[route].bytes += size - old_size;
  if (has_room(kind)) {
    std::uint64_t* room = rooms_.find(slot + std::uint64_t{1});
    if (room == nullptr) {
      const std::uint64_t first = kind == RouteKind::reserve ? std::max(found_.routes[route].bytes, size) : size;
      rooms_.insert(slot + std::uint64_t{1}, first);
      live_[route].room += first;
    } else if (*room < size) {
      live_[route].room += size - *room;
      *room = size;
    }
  }
  if (kind == RouteKind::temp || kind == RouteKind::temp_scope) {
    if (thread >= temp_since_.size()) temp_since_.resize(thread + std::size_t{1});
    if (temp_since_[thread] == 0) temp_since_[thread] = marks_ + 1;
  }
  note_peaks(route);
}

bool RoutePlan::went(std::uint32_t route, std::uint32_t thread, std::uint32_t slot, std::uint64_t size,
                     std::uint8_t alignment_log2) {
  live_[route].bytes -= size;
  const RouteKind kind = kind_of(route);
  if (kind == RouteKind::reserve) {
    std::uint64_t room = 0;
    rooms_.take(slot + std::uint64_t{1}, room);
    live_[route].room -= room;
  }
  note_peaks(route);
  if (kind != RouteKind::keep) return false;
  part(route, thread).kept.push_back({slot, alignment_log2});
  return true;
}

void RoutePlan::note_peaks(std::uint32_t route) {
  PlanRoute& plan = found_.routes[route];
  const Live& live = live_[route];
  plan.peak_bytes = std::max(plan.peak_bytes, live.bytes);
  if (live.room > live.bytes) plan.extra_bytes = std::max(plan.extra_bytes, live.room - live.bytes);
}

std::optional<Op> RoutePlan::wait_before(const ReroutedBlock& block, std::uint32_t thread) {
  if (!found_.shared[block.route]) return {};  // the thread's own last free rewinds the arena
  Part& mine = part(block.route, thread);
  if (block.generation <= mine.awaited) return {};
  mine.awaited = block.generation;
  return Op::of(kind_await_rewind, block.event, block.route, block.generation);
}

std::optional<Op> RoutePlan::frame_end_before(std::uint32_t thread) {
  if (thread >= temp_since_.size() || temp_since_[thread] == 0 || temp_since_[thread] > marks_) return {};
  temp_since_[thread] = 0;
  if (thread == found_.frame_thread) return {};
  ++frame_ends_;
  return Op::of(kind_frame_end, last_mark_, 0, 0);
}

std::optional<Op> RoutePlan::frame_end_at(std::uint32_t mark, std::uint32_t thread) {
  if (!found_.ends_frames || thread != found_.frame_thread) return {};
  ++marks_;
  ++frame_ends_;
  last_mark_ = mark;
  return Op::of(kind_frame_end, mark, 0, 1);
}

std::uint64_t RoutePlan::extra_bytes() const {
  std::uint64_t sum = 0;
  for (const PlanRoute& route : found_.routes) sum += route.extra_bytes;
  return sum;
}

std::string RoutePlan::tables(const std::vector<std::uint32_t>& routes_of_groups) const {
  if (empty()) return "";
  return bytes_of(found_.routes) + bytes_of(found_.generations) + bytes_of(routes_of_groups);
}

}  // namespace blockyard::replay
