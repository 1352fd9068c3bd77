#include "heap/background/maintenance.hpp"

#include <mutex>
#include <utility>

#include "base/background_work.hpp"
#include "base/pages.hpp"
#include "heap/front/small_blocks.hpp"

namespace blockyard::heap {

namespace {

constexpr std::uint32_t most_a_round = 16;  // heaps swept, and magazines drained

}  // namespace

constinit Maintenance maintenance{page_allocator, process_heaps, process_depot};

// False: another thread is at it, or this one, and a signal handler interrupted it.
bool Maintenance::begin() {
  if (allocator_.working.exchange(true, std::memory_order_acquire)) {
    return false;
  }
  if (std::exchange(forgets_later_, false)) {
    allocator_.pages.abandon_work();
  }
  return true;
}

Round Maintenance::run(std::uint64_t budget_ns, bool in_background) {
  if (!begin()) {
    return {};
  }
  const Round round = run_alone(budget_ns, in_background);
  allocator_.working.store(false, std::memory_order_release);
  return round;
}

bool Maintenance::give_back_a_chunk() {
  if (!begin()) {
    return false;
  }
  follow(base::monotonic_ns());
  ReserveTarget& reserve_target = allocator_.reserve_target;
  const bool given = allocator_.purge.purge_one(reserve_target.least_pages(), reserve_target.most_ready());
  allocator_.purge.note(allocator_.pages.take_lowest());
  reserve_target.end_round(allocator_.pages.pages_in_reserve(), allocator_.ready_slabs.pages());
  allocator_.working.store(false, std::memory_order_release);
  return given;
}

void Maintenance::forget() {
  allocator_.working.store(false, std::memory_order_relaxed);
  allocator_.pages.abandon_work();
}

void Maintenance::forget_later() {
  allocator_.pages.lock().forget_waiting();
  sweep_lock.forget_waiting();
  if (std::exchange(is_sweeping_, false)) {
    sweep_lock.unlock_in_child();
  }
  forgets_later_ = true;
  allocator_.working.store(false, std::memory_order_relaxed);
}

// What stands ready must not be what takes a control group to its limit. An eighth of what the group has left may, free
// memory counted as left, so that giving it back changes nothing; under pressure no more than serves any one block.
void Maintenance::look_at_limits(std::uint16_t tick) {
  constexpr std::uint16_t ticks_between = 32;  // half a second
  constexpr unsigned high_pressure = 10;       // percent of the time
  if (static_cast<std::uint16_t>(tick - looked_at_) < ticks_between || base::BackgroundWork::is_in_sandbox()) {
    return;
  }
  looked_at_ = tick;
  const base::MemoryRoom room = base::memory_room(memory_root.load(std::memory_order_relaxed));
  const PageHeap::Totals now = allocator_.pages.totals();
  std::uint64_t most = ((room.bytes >> page_shift) + now.ready + now.dirty) / 8;
  if (room.pressure >= high_pressure) {
    most = std::min<std::uint64_t>(most, PageHeap::reserve_run);
  }
  allocator_.reserve_target.keep_at_most(most);
}

// What the program did since the last round; returns the tick.
std::uint16_t Maintenance::follow(std::uint64_t now_ns) {
  constexpr std::uint64_t tick_ns = tick_ms * 1'000'000;
  const auto tick = static_cast<std::uint16_t>(now_ns / tick_ns);
  allocator_.tick.store(tick, std::memory_order_relaxed);
  const PageHeap::Lowest lowest = allocator_.pages.take_lowest();
  allocator_.reserve_target.follow({.now_ns = now_ns,
                                    .tick = tick,
                                    .taken = allocator_.taken(),
                                    .missed = allocator_.counts.populated_by_program.load(std::memory_order_relaxed),
                                    .lowest_reserve = lowest.reserve,
                                    .ready_slabs = allocator_.ready_slabs.pages()});
  allocator_.purge.follow(tick, lowest, allocator_.reserve_target.pages(), settings.purge_ticks());
  return tick;
}

Round Maintenance::run_alone(std::uint64_t budget_ns, bool in_background) {
  PageHeap& pages = allocator_.pages;
  ReadySlabs& ready_slabs = allocator_.ready_slabs;
  ReserveTarget& reserve_target = allocator_.reserve_target;
  const auto now_ns = in_background ? base::monotonic_ns : base::program_monotonic_ns;
  const std::uint64_t started = now_ns();
  const auto within_budget = [&] { return now_ns() - started < budget_ns; };
  const std::uint16_t tick = follow(started);
  look_at_limits(tick);
  // Where addresses are short, free runs must not be cut up by what is made ready: one block may need them all.
  bool exhausted = allocator_.pages_in_reserve() < reserve_target.pages() && !base::BackgroundWork::is_in_sandbox() &&
                   base::address_space_is_limited();
  while (!exhausted && allocator_.pages_in_reserve() < reserve_target.pages() && within_budget()) {
    exhausted = !allocator_.populate_chunk(
        allocator_.purge.surplus(pages.totals().used, reserve_target.least_pages(), reserve_target.most_ready()) != 0,
        in_background);
  }
  reserve_target.set_exhausted(exhausted);
  // What is cut comes out of the reserve: where that is small, half of it at most.
  const std::uint64_t most_cut = reserve_target.began_small() ? reserve_target.pages() / 2 : ~std::uint64_t{0};
  for (const std::uint32_t slices : ReadySlabs::lengths) {
    while (reserve_target.pages() != 0 && ready_slabs.count(slices) < ReadySlabs::target(slices) &&
           ready_slabs.pages() < most_cut && within_budget() && allocator_.cut_ready_slab(slices)) {
    }
  }
  if (reserve_target.taken_last_round() == 0) {
    allocator_.uncut_ready_slabs(false);  // what the program gave back and stopped taking
  }

  sweep_lock.lock();
  is_sweeping_ = true;
  const bool swept = sweep(tick);
  is_sweeping_ = false;
  sweep_lock.unlock();

  // Four chunks a round: 8 MiB a millisecond gives a freed level of 2 GiB back within its two seconds, and leaves room.
  constexpr int most_purged = 4;
  int purged = 0;
  while (purged < most_purged && within_budget() &&
         allocator_.purge.purge_one(reserve_target.least_pages(), reserve_target.most_ready())) {
    ++purged;
  }
  allocator_.purge.note(pages.take_lowest());
  reserve_target.end_round(pages.pages_in_reserve(), ready_slabs.pages());
  return {swept || purged != 0 || !within_budget(), reserve_target.taken_last_round(), reserve_target.spent()};
}

// Puts what waits in the depot, of at most `most` magazines, back into its slabs. One thread at a time.
bool Maintenance::drain_depot(std::uint16_t tick, bool all, std::uint32_t most) {
  return depot_.drain(tick, all, most, [](void* block) { free_remote(block); });
}

void Maintenance::empty_depot() {
  const std::lock_guard hold(sweep_lock);
  drain_depot(allocator_.tick.load(std::memory_order_relaxed), true, magazine_count);
}

// Looks after a few heaps that wait for a thread. True where some are left.
bool Maintenance::sweep(std::uint16_t tick) {
  constexpr std::uint32_t most_adopted = 64;        // of one heap
  constexpr std::uint16_t parked_before_flush = 8;  // ticks: an eighth of a second
  bool flushed = false;
  bool more = drain_depot(tick, false, most_a_round);
  for (std::uint32_t turn = 0; turn < most_a_round; ++turn) {
    ThreadHeap* const heap = heaps_.take_to_sweep();
    if (heap == nullptr) {
      drain_for_parked(tick);
      break;
    }
    if (const std::uint32_t adopted = adopt_pending(heap, most_adopted); adopted != 0) {
      heap->needs_flush = true;
      more |= adopted == most_adopted;
    }
    // One heap a round, and none that was in use a moment ago: while it is swept, a thread that begins cannot have it.
    if (heap->needs_flush && !flushed && static_cast<std::uint16_t>(tick - heap->parked_at) >= parked_before_flush) {
      flush(heap);
      heap->needs_flush = false;
      flushed = true;
    }
    slabs_ += heap->slabs;
    heaps_.park(heap);
  }
  heaps_.keep_spare_heaps();
  return more || flushed;
}

// At the end of a turn. A block whose thread has ended, and which the others hand to one another by way of the depot in
// each frame, is never free to its slab, and may be all that a freed level has left in it. So while parked heaps have
// slabs the depot is drained each purge time, and less often where they lose none by it.
void Maintenance::drain_for_parked(std::uint16_t tick) {
  const auto shortest_wait = static_cast<std::uint16_t>(std::min<std::uint64_t>(settings.purge_ticks(), 1'000));
  const auto longest_wait = static_cast<std::uint16_t>(32 * shortest_wait);
  const std::uint32_t slabs = std::exchange(slabs_, 0);
  if (slabs < slabs_before_ - slabs_before_ / 8) {
    wait_ = shortest_wait;
    slabs_before_ = slabs;
  }
  if (slabs != 0 && static_cast<std::uint16_t>(tick - drained_at_) >= wait_) {
    drain_depot(tick, true, 16 * most_a_round);
    drained_at_ = tick;
    wait_ = std::clamp<std::uint16_t>(2 * wait_, shortest_wait, longest_wait);
    slabs_before_ = slabs;
  }
}

std::size_t Maintenance::trim() {
  PageHeap& pages = allocator_.pages;
  empty_depot();
  std::size_t given = 0;
  // Each turn takes a page at least; what others free meanwhile may stay.
  const PageHeap::Totals free = pages.totals();
  for (const PageState state : {PageState::free_dirty, PageState::free_ready}) {
    for (std::uint64_t left = state == PageState::free_dirty ? free.dirty : free.ready; left != 0; --left) {
      const PageRun run = pages.take_free(state);
      if (!run || !allocator_.purge.purge_run(run)) {
        break;
      }
      given += std::size_t{run.length} << page_shift;
    }
  }
  return given;
}

void Maintenance::give_back_kept(ThreadHeap* heap) {
  empty_depot();
  constexpr std::uint32_t at_once = 64;
  while (adopt_pending(heap, at_once) == at_once) {
  }
  flush(heap);
}

}  // namespace blockyard::heap
