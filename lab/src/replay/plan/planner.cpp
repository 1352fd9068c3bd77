#include "replay/plan/planner.hpp"

#include <algorithm>
#include <bit>
#include <cstdio>

namespace blockyard::replay {
namespace {

using journal::Event;
using journal::Kind;
using journal::to_ns;

std::string seconds(std::uint64_t ns) {
  char text[32];
  std::snprintf(text, sizeof text, "%.3f s", static_cast<double>(ns) / 1e9);
  return text;
}

// Far enough ahead that the table's cache line has arrived when its turn comes.
constexpr std::size_t lookups_ahead = 12;

std::uint8_t alignment_log2(const Event& event) {
  if (event.kind != Kind::allocate_aligned || event.alignment <= (1u << natural_alignment_log2)) {
    return natural_alignment_log2;
  }
  return static_cast<std::uint8_t>(std::bit_width(event.alignment) - 1);
}

void check_given(const Event& event, std::uint32_t number, std::uint64_t next_block) {
  if (event.block != next_block) {
    throw journal::Error("event " + std::to_string(number) + " gives block " + std::to_string(event.block) +
                         " where block " + std::to_string(next_block) + " is next; the journal is damaged");
  }
  if (event.size > max_size) {
    throw journal::Error("event " + std::to_string(number) + " asks for " + std::to_string(event.size) +
                         " bytes, more than a process can address; the journal is damaged");
  }
}

}  // namespace

Planner::Planner(const std::string& plan_path, const PlanOptions& options, Reroutes reroutes)
    : options_(options),
      from_ns_(options.from_s ? to_ns(*options.from_s) : 0),
      to_ns_(options.to_s ? to_ns(*options.to_s) : 0),
      writer_(plan_path),
      routes_(std::move(reroutes)),
      pair_(plan_path) {}

bool Planner::add(std::span<const Event> events, std::uint64_t preamble_events) {
  preamble_events_ = preamble_events;
  for (std::size_t at = 0; at < events.size(); ++at) {
    const Event& event = events[at];
    if (at + lookups_ahead < events.size()) slot_of_block_.prefetch(ended_block(events[at + lookups_ahead]) + 1);
    const std::uint64_t index = pair_.size();
    const bool measured = index >= preamble_events && event.time_ns >= from_ns_;
    if (measured && options_.to_s && event.time_ns >= to_ns_) {
      ended_ = true;
      return false;
    }
    if (index >= max_events) {
      throw journal::Error("the journal has more than " + std::to_string(max_events) +
                           " events, more than one plan can number; replay a stretch of it");
    }
    const auto number = static_cast<std::uint32_t>(index);
    if (measured && !measuring_) begin_stretch(event.time_ns, number);
    pair_.push_back(none);
    last_time_ns_ = event.time_ns;
    if (event.thread >= max_threads && !options_.one_thread) {
      throw journal::Error("the journal has more than " + std::to_string(max_threads) +
                           " threads, more than a sample row can name; replay it with --threads one");
    }
    const std::uint32_t thread = options_.one_thread ? 0 : event.thread;
    const Event* const planned = routes_.planned(event, number);
    if (planned == nullptr || (planned == &event && gives_block(event.kind))) check_given(event, number, next_block_++);
    if (planned == nullptr) continue;
    switch (planned->kind) {
      case Kind::allocate:
      case Kind::allocate_zeroed:
      case Kind::allocate_aligned:
        allocate(event, number, thread);
        break;
      case Kind::free:
        free(event, number, thread);
        break;
      case Kind::reallocate:
        reallocate(*planned, number, thread);
        break;
      case Kind::frame_mark:
        if (!measuring_) break;
        frames_.push_back({event.time_ns - facts_.header.origin_ns, number, event.thread});
        if (const auto op = routes_.frame_end_at(number, thread)) append(event.time_ns, thread, *op);
        break;
      case Kind::phase_mark:
        if (!measuring_) phases_.clear();  // of the phases before the stretch, only the last reaches into it
        phases_.push_back({measuring_ ? event.time_ns - facts_.header.origin_ns : 0, number, event.tag});
        break;
    }
  }
  return true;
}

void Planner::allocate(const Event& event, std::uint32_t number, std::uint32_t thread) {
  const ReroutedBlock* rerouted = routes_.block_of(number);
  const std::uint32_t route = rerouted == nullptr ? none : rerouted->route;
  std::optional<std::uint32_t> kept;
  if (rerouted != nullptr) kept = routes_.kept_slot(route, thread, event.size, alignment_log2(event));
  const std::uint32_t slot = kept ? *kept : slots_.take(thread, number, route);
  if (slot >= blocks_.size()) blocks_.resize(slots_.size());
  Block& block = blocks_[slot];
  const std::uint32_t after = block.last_event == none ? none : awaited(block, thread);
  block.size = event.size;
  block.id = event.block;
  block.giver = block.last_event = number;
  block.giver_thread = block.last_thread = static_cast<std::uint16_t>(thread);
  block.kind = event.kind;
  block.alignment_log2 = alignment_log2(event);
  block.alive = true;
  slot_of_block_.insert(block.id + 1, slot);
  count_live(0, event.size);
  ++live_blocks_;
  if (!measuring_) return;
  ++facts_.header.blocks;
  facts_.header.peak_blocks = std::max(facts_.header.peak_blocks, live_blocks_);
  if (rerouted != nullptr) {
    if (const auto op = routes_.wait_before(*rerouted, thread)) writer_.add(thread, *op);
  }
  emit(event, number, thread, slot, after, event.size, block.alignment_log2);
  if (rerouted != nullptr) routes_.came(route, thread, slot, event.size, 0);
}

void Planner::free(const Event& event, std::uint32_t number, std::uint32_t thread) {
  const std::uint32_t slot = take_slot(event.block, number);
  Block& block = blocks_[slot];
  const std::uint32_t after = awaited(block, thread);
  pair_[block.giver] = number;
  pair_[number] = block.giver;
  if (measuring_) {
    facts_.remote_frees += block.giver_thread != thread;
    emit(event, number, thread, slot, after, block.size, block.alignment_log2);
  }
  block.last_event = number;
  block.last_thread = static_cast<std::uint16_t>(thread);
  block.alive = false;
  const std::uint32_t route = route_of(slot);
  const bool kept = route != none && routes_.went(route, thread, slot, block.size, block.alignment_log2);
  if (!kept) slots_.give_back(slot, thread, number);
  count_live(block.size, 0);
  --live_blocks_;
}

void Planner::reallocate(const Event& event, std::uint32_t number, std::uint32_t thread) {
  const std::uint32_t slot = take_slot(event.old_block, number);
  Block& block = blocks_[slot];
  const std::uint32_t after = awaited(block, thread);
  pair_[block.giver] = number;
  slot_of_block_.insert(event.block + 1, slot);
  count_live(block.size, event.size);
  if (measuring_) {
    facts_.remote_frees += block.giver_thread != thread;
    ++facts_.header.blocks;
    emit(event, number, thread, slot, after, event.size, natural_alignment_log2);
  }
  if (const std::uint32_t route = route_of(slot); route != none) {
    routes_.came(route, thread, slot, event.size, block.size);
  }
  block.size = event.size;
  block.id = event.block;
  block.giver = block.last_event = number;
  block.giver_thread = block.last_thread = static_cast<std::uint16_t>(thread);
  block.kind = Kind::allocate;  // a preamble restores it so: realloc keeps no alignment
  block.alignment_log2 = natural_alignment_log2;
}

std::uint32_t Planner::route_of(std::uint32_t slot) const { return routes_.empty() ? none : slots_.route_of(slot); }

std::uint32_t Planner::take_slot(std::uint64_t block, std::uint32_t number) {
  std::uint32_t slot = none;
  if (block >= next_block_ || !slot_of_block_.take(block + 1, slot)) {
    throw journal::Error("event " + std::to_string(number) +
                         " frees a block that is not alive; the journal is damaged, see 'blockyard check'");
  }
  return slot;
}

std::uint32_t Planner::awaited(const Block& block, std::uint32_t thread) {
  // What happened before the stretch is over before the clock starts.
  if (!measuring_ || block.last_thread == thread || block.last_event < facts_.first_event) return none;
  ++facts_.waits;
  return block.last_event;
}

void Planner::count_live(std::uint64_t gone, std::uint64_t come) {
  live_bytes_ += come - gone;
  if (!measuring_) return;
  facts_.header.peak_bytes = std::max(facts_.header.peak_bytes, live_bytes_);
  facts_.largest_bytes = std::max(facts_.largest_bytes, come);
}

void Planner::begin_stretch(std::uint64_t time_ns, std::uint32_t number) {
  measuring_ = true;
  facts_.first_event = number;
  // The stretch's own beginning where the user named one. Otherwise, time before the program's first event is no wait.
  facts_.header.origin_ns = options_.from_s ? std::min(from_ns_, time_ns) : time_ns;
  std::vector<std::uint32_t> alive;
  for (std::uint32_t slot = 0; slot < blocks_.size(); ++slot) {
    if (blocks_[slot].alive) alive.push_back(slot);
  }
  std::sort(alive.begin(), alive.end(),
            [&](std::uint32_t a, std::uint32_t b) { return blocks_[a].giver < blocks_[b].giver; });

  // The run gets its own slots: it may need fewer than the most blocks that were alive before it.
  Slots slots;
  std::vector<Block> blocks;
  journal::FlatMap<std::uint32_t> slot_of_block;
  std::vector<std::vector<Op>> preamble;
  for (const std::uint32_t old_slot : alive) {
    const Block& block = blocks_[old_slot];
    const std::uint32_t thread = block.giver_thread;
    const std::uint32_t slot = slots.take(thread, 0);
    if (slot >= blocks.size()) blocks.resize(slots.size());
    blocks[slot] = block;
    slot_of_block.insert(block.id + 1, slot);
    if (thread >= preamble.size()) preamble.resize(thread + 1);
    preamble[thread].push_back(
        Op::of(static_cast<std::uint8_t>(block.kind), block.giver, slot, block.size, block.alignment_log2));
    facts_.header.preamble_bytes += block.size;
    facts_.largest_bytes = std::max(facts_.largest_bytes, block.size);
  }
  for (std::uint32_t thread = 0; thread < preamble.size(); ++thread) {
    if (!preamble[thread].empty()) writer_.add_preamble(thread, preamble[thread]);
  }
  slot_of_block_ = std::move(slot_of_block);
  slots_ = std::move(slots);
  blocks_ = std::move(blocks);
  facts_.header.preamble_blocks = alive.size();
  facts_.header.peak_blocks = alive.size();
  facts_.header.peak_bytes = live_bytes_;
}

void Planner::emit(const Event& event, std::uint32_t number, std::uint32_t thread, std::uint32_t slot,
                   std::uint32_t after, std::uint64_t size, std::uint8_t alignment_log2) {
  if (const auto frame_end = routes_.frame_end_before(thread)) writer_.add(thread, *frame_end);
  append(event.time_ns, thread,
         Op::of(static_cast<std::uint8_t>(event.kind), number, slot, size, alignment_log2, after));
  ++facts_.header.measured_events;
  facts_.header.duration_ns = event.time_ns - facts_.header.origin_ns;
}

void Planner::append(std::uint64_t event_ns, std::uint32_t thread, Op op) {
  const std::uint64_t time_ns = event_ns - facts_.header.origin_ns;
  if (thread >= last_ns_.size()) last_ns_.resize(thread + 1, 0);
  std::uint64_t delta_ns = time_ns - last_ns_[thread];
  last_ns_[thread] = time_ns;
  if (delta_ns > 0xffff'ffffu) {
    writer_.add(thread, Op::of(kind_pause, op.event, 0, std::min(delta_ns, max_size)));
    delta_ns = 0;
  }
  op.delta_ns = static_cast<std::uint32_t>(delta_ns);
  writer_.add(thread, op);
}

void Planner::end_without_measured_event() const {
  if (pair_.size() == 0 && !ended_) throw journal::Error("the journal has no events");
  if (!ended_ && pair_.size() <= preamble_events_) {
    throw journal::Error(
        "there is nothing to measure: the whole journal is its preamble, the blocks alive before it begins (a text's "
        "allocations at time 0 are, unless it begins with the lines '# blockyard journal text 1' and '# preamble 0')");
  }
  const std::string span = "between " + seconds(from_ns_) + " and " + (options_.to_s ? seconds(to_ns_) : "the end");
  if (ended_) throw journal::Error("no allocation or free lies " + span + " of the journal; choose a longer stretch");
  throw journal::Error("no allocation or free lies " + span + ": the journal ends at " + seconds(last_time_ns_));
}

PlanFacts Planner::finish(bool paced) {
  PlanHeader& header = facts_.header;
  if (header.measured_events == 0) end_without_measured_event();
  header.flags = (paced ? plan_paced : 0u) | (options_.one_thread ? plan_one_thread : 0u);
  header.events = pair_.size();
  header.slots = slots_.size();
  header.pool_bytes = pool_bytes(header.peak_bytes + routes_.extra_bytes(), header.peak_blocks, facts_.largest_bytes);
  header.routes = static_cast<std::uint32_t>(routes_.routes().size());
  header.generations = routes_.generations();
  header.frame_ends = routes_.frame_ends();
  std::vector<std::uint32_t> frame_events;
  frame_events.reserve(frames_.size());
  for (const FrameMark& frame : frames_) frame_events.push_back(frame.event);
  std::vector<std::uint32_t> phase_events;
  phase_events.reserve(phases_.size());
  for (const PhaseMark& phase : phases_) phase_events.push_back(phase.event);
  writer_.finish(header, frame_events, phase_events, routes_.tables(slots_.routes_of_groups()));
  facts_.idle_threads = writer_.idle_threads();
  return facts_;
}

}  // namespace blockyard::replay
