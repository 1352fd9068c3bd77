// Temp, except its inline paths: blocks that do not fit, the end of a frame, scopes, growth, and watched processes.
#include "lifetime/temp.hpp"

#include <atomic>
#include <bit>
#include <iterator>
#include <mutex>

#include "base/bits.hpp"
#include "base/kept_errno.hpp"
#include "base/pages.hpp"
#include "blockyard/temp_cursor.hpp"
#include "checks/report.hpp"
#include "checks/watched.hpp"

namespace blockyard::lifetime {

BY_DEFINE_THREAD_VARIABLE(TempRegion, by_temp_region, temp_region)

namespace {

constexpr std::size_t least_region = 64;

struct Settings {
  std::size_t region = std::size_t{256} << 10;
  std::size_t limit = std::size_t{4} << 20;
};
constinit Settings settings;  // under rare_lock
constinit std::atomic<std::uint32_t> settings_version{1};

Settings read_settings(std::uint32_t& version) {
  const std::lock_guard lock(rare_lock);
  version = settings_version.load(std::memory_order_relaxed);
  return settings;
}

TempRegion& region_of(ThreadState* state) { return checks::is_watched() ? state->watched_temp : temp_region(); }

std::uintptr_t address_of(const void* block) { return reinterpret_cast<std::uintptr_t>(block); }
void* pointer_to(std::uintptr_t address) { return reinterpret_cast<void*>(address); }  // NOLINT: it was a pointer

void start_region(ThreadState* state) {
  const std::uintptr_t begin = address_of(state->region);
  TempRegion& region = region_of(state);
  region.begin = region.peak = begin;
  region.bytes = state->region_bytes;
  region.older = 0 - (state->region_bytes + 1);  // `last` may be one byte behind the end, for a cursor
  go_on_at(region, begin);
  state->figures.region_bytes = state->region_bytes;
}

// Unused address space before a region: as much as the region may grow to, and a byte (TempRegion::older). Its last
// page is readable, so that temp_job_deallocate() of a region's first block finds no header there and reports the
// mistake.
std::size_t gap_before(std::size_t reserved) {
  return base::align_up(reserved + 1, std::max(max_alignment, base::page_size()));
}

// Makes a region without blocks `bytes` large. False, with nothing changed, when memory is exhausted.
bool resize_region(ThreadState* state, std::size_t bytes, std::size_t limit) {
  if (bytes > state->reserved) {
    // Reserves what it may grow to, so that growing takes no system call.
    const std::size_t room = base::align_up(std::max(bytes, limit), base::page_size());
    const std::size_t gap = gap_before(room);
    auto* const space = static_cast<std::byte*>(base::reserve_space(gap + room, max_alignment));
    if (space == nullptr) {
      return false;
    }
    if (!base::commit_readable_pages(space + gap - base::page_size(), base::page_size()) ||
        !base::commit_pages(space + gap, room)) {
      base::release_pages(space, gap + room);
      return false;
    }
    if (state->region != nullptr) {
      checks::show(state->region, state->reserved);
      const std::size_t former_gap = gap_before(state->reserved);
      base::release_pages(state->region - former_gap, former_gap + state->reserved);
    }
    state->region = space + gap;
    state->reserved = room;
    checks::hide(state->region, bytes);
  } else if (bytes > state->region_bytes) {
    checks::hide(state->region + state->region_bytes, bytes - state->region_bytes);
  }
  state->region_bytes = bytes;
  return true;
}

bool open_region(ThreadState* state) {
  const Settings wanted = read_settings(state->settings);
  if (!resize_region(state, wanted.region, wanted.limit)) {
    return false;
  }
  start_region(state);
  return true;
}

// The byte behind a cursor's piece may be outside the region.
void note_peak(TempRegion& region) { region.peak = std::max(region.peak, std::min(region.next(), end_of(region))); }

// Where the block after this one begins: behind what this one takes, but not behind the region.
std::uintptr_t behind_block(const TempRegion& region, std::uintptr_t begin, std::size_t bytes, std::size_t alignment) {
  return begin + std::min(taken_by(bytes, alignment), end_of(region) - begin);
}

void* take(ThreadState* state, TempRegion& region, std::uintptr_t begin, std::size_t size, std::size_t alignment) {
  const std::size_t bytes = size + (size == 0);
  if (checks::is_watched()) {
    if (!state->blocks.push({begin, bytes, true})) {
      return base::failed(ENOMEM);
    }
    checks::check_untouched(pointer_to(begin), bytes);
    checks::show_fresh(pointer_to(begin), bytes);
    checks::announce_allocated(pointer_to(begin), size, alignment);
  }
  go_on_at(region, behind_block(region, begin, bytes, alignment));
  region.last = begin;
  return pointer_to(begin);
}

// In a watched process: the record of the block that begins at `address`, or nullptr.
WatchedBlock* find_block(ThreadState* state, std::uintptr_t address) {
  WatchedBlock* const found =
      std::lower_bound(state->blocks.begin(), state->blocks.end(), address,
                       [](const WatchedBlock& block, std::uintptr_t begin) { return block.begin < begin; });
  return found != state->blocks.end() && found->begin == address ? found : nullptr;
}

void end_watched_block(WatchedBlock& block) {
  if (block.live) {
    checks::announce_freed(pointer_to(block.begin));
    block.live = false;
  }
}

void free_watched(ThreadState* state, TempRegion& region, void* block) {
  WatchedBlock* const found = find_block(state, address_of(block));
  if (found == nullptr || !found->live) {
    if (checks::are_on()) {
      checks::report_fault(
          "deallocate of no live temp block (freed already, of an earlier frame, or inside of a block)", block);
    }
    return;
  }
  end_watched_block(*found);
  checks::hide(block, found->size);
  if (found == &state->blocks.newest()) {
    note_peak(region);
    go_on_at(region, found->begin);
    state->blocks.cut(state->blocks.count() - 1);
  }
}

bool is_outside(ThreadState* state, void* block) {
  const BlockHeader* const header = header_of(block);
  return header->kind == BlockKind::outside && header->number < state->outside.count() &&
         state->outside[header->number].block == block;
}

// Updates the frame's peak demand: call it when demand grew or is about to fall. Blocks that were taken back one by one
// after a block did not fit may be missing; a frame with a larger region counts them.
void note_demand(ThreadState* state, const TempRegion& region) {
  const std::size_t used = std::min(region.next(), end_of(region)) - region.begin;
  state->peak_demand = std::max(state->peak_demand, used + state->demand);
}

// Drops the slots from `first` on, as an endless region would have taken their blocks back.
void cut_outside(ThreadState* state, std::size_t first) {
  if (first < state->outside.count()) {
    note_demand(state, region_of(state));
    state->demand = state->outside[first].demand;
    state->outside.cut(first);
  }
}

void free_outside_block(ThreadState* state, void* block) {
  if (state == nullptr || !is_outside(state, block)) {
    checks::report_fault(
        "deallocate of no temp block of this thread (freed already, of an earlier frame, or another thread's)", block);
  }
  state->outside[header_of(block)->number].block = nullptr;
  release_block(block);
  std::size_t first = state->outside.count();
  while (first > 0 && state->outside[first - 1].block == nullptr) {
    --first;
  }
  cut_outside(state, first);
}

// Frees the blocks that did not fit, except the first `before` of the frame.
void free_outside_after(ThreadState* state, std::size_t before) {
  std::size_t first = state->outside.count();
  while (first > 0 && state->outside[first - 1].before >= before) {
    --first;
    if (void* const block = state->outside[first].block) {
      release_block(block);
    }
  }
  cut_outside(state, first);
}

// Ends every block of the region that begins at or after `from`.
void hide_from(ThreadState* state, TempRegion& region, std::uintptr_t from) {
  if (!checks::is_watched()) {
    return;
  }
  while (state->blocks.count() != 0 && state->blocks.newest().begin >= from) {
    end_watched_block(state->blocks.newest());
    state->blocks.cut(state->blocks.count() - 1);
  }
  checks::hide(pointer_to(from), region.next() - from);
}

unsigned bucket_of(std::size_t peak) {
  return peak < 1024 ? 0 : std::min(static_cast<unsigned>(std::bit_width(peak)) - 10, unsigned{BY_PEAK_BUCKETS - 1});
}

void count_frame(TempFigures& figures, std::size_t peak, std::size_t demand) {
  figures.frames += 1;
  figures.frames_by_peak[bucket_of(peak)] += 1;
  if (peak > figures.peak_bytes) {
    figures.peak_bytes = peak;
  }
  if (demand > figures.peak_demand_bytes) {
    figures.peak_demand_bytes = demand;
  }
}

// Between frames: applies new settings, or grows to what the frame needed.
void adapt_region(ThreadState* state, std::size_t demand) {
  if (state->settings != settings_version.load(std::memory_order_relaxed)) {
    const Settings wanted = read_settings(state->settings);
    resize_region(state, wanted.region, wanted.limit);
    return;
  }
  if (demand <= state->region_bytes) {
    return;
  }
  std::uint32_t version;
  const std::size_t limit = read_settings(version).limit;
  const std::size_t bytes = std::min(demand, limit);
  if (bytes > state->region_bytes && resize_region(state, bytes, limit)) {
    state->figures.grown += 1;
  }
}

// Keeps the table of a thread that never ends a frame as small as its live blocks allow: when the table is full and at
// least half of its slots are of freed blocks, it drops these. O(1) per block, since half a table of blocks comes
// first.
void close_gaps(ThreadState* state) {
  PageArray<OutsideBlock>& outside = state->outside;
  const auto freed =
      std::count_if(outside.begin(), outside.end(), [](const auto& slot) { return slot.block == nullptr; });
  if (static_cast<std::size_t>(freed) * 2 < outside.count()) {
    return;
  }
  std::size_t kept = 0;
  const OutsideBlock* gap = nullptr;  // the first of the freed slots before this one: it has the demand to go back to
  for (const OutsideBlock& slot : outside) {
    if (slot.block == nullptr) {
      gap = gap != nullptr ? gap : &slot;
      continue;
    }
    const std::size_t demand = gap != nullptr ? gap->demand : slot.demand;
    gap = nullptr;
    header_of(slot.block)->number = static_cast<std::uint32_t>(kept);
    outside[kept++] = {slot.block, demand, slot.before};
  }
  outside.cut(kept);
}

// Enters a block that did not fit; its table has room.
inline void* enter_outside(ThreadState* state, const TempRegion& region, void* block, std::size_t bytes,
                           std::size_t alignment) {
  state->outside.push({block, state->demand, state->outside_ever});
  state->outside_ever += 1;
  auto& counter = bytes > state->region_bytes ? state->figures.overflow_too_large : state->figures.overflow_full;
  counter += 1;
  // Where the block would begin if the region had no end.
  const std::size_t position = std::min(region.next(), end_of(region)) - region.begin + state->demand;
  state->demand += base::align_up(position, alignment) - position + taken_by(bytes, alignment);
  note_demand(state, region);
  return block;
}

// Gives the thread a region to start its next block in. Without memory there is none: blocks come from temp job.
void ensure_region(ThreadState* state) {
  if (region_of(state).begin != 0) {
    return;
  }
  if (state->region == nullptr || state->settings != settings_version.load(std::memory_order_relaxed)) {
    open_region(state);
  } else {
    start_region(state);  // left behind by a thread that ended
  }
}

// Blocks that do not fit come in a row. So this one begins with their case, and it is no cold function, which compilers
// make small rather than fast.
[[gnu::noinline]] void* allocate_slow(std::size_t size, std::size_t alignment) {
  const std::size_t bytes = size + (size == 0);
  const auto fits = [=](const TempRegion& region, std::uintptr_t begin) {
    return begin <= end_of(region) && bytes <= end_of(region) - begin && region.begin != 0;
  };
  TempRegion& usual = temp_region();  // without memory in a watched process
  if (usual.begin != 0 && is_valid_alignment(alignment) && !this_thread->outside.is_full() &&
      !fits(usual, base::align_up(usual.next(), alignment))) {
    ThreadState* const state = this_thread;
    if (void* const block =
            allocate_outside_in_chunk(size, alignment, static_cast<std::uint32_t>(state->outside.count()))) {
      return enter_outside(state, usual, block, bytes, alignment);
    }
  }
  ThreadState* const state = ensure_thread(alignment);
  if (state == nullptr) {
    return nullptr;
  }
  ensure_region(state);
  TempRegion& region = region_of(state);
  const std::uintptr_t begin = base::align_up(region.next(), alignment);
  return fits(region, begin) ? take(state, region, begin, size, alignment)
                             : take_outside(state, region, size, alignment);
}

// A piece is at most a quarter of the region, since its rest is lost when something comes behind it.
constexpr std::size_t largest_piece = std::size_t{64} << 10;
std::size_t piece_of(const TempRegion& region) { return std::min(region.bytes / 4, largest_piece); }

// One byte behind a piece stays unused: so no block of the piece ends where the thread's next block begins, and
// resizing or freeing it by the thread's functions never moves that place.
std::uintptr_t behind(std::uintptr_t piece_end) { return piece_end + 1; }

// Whether nothing came behind the piece, so that the region can go on at the cursor's bump pointer.
bool is_newest(const TempRegion& region, std::uintptr_t piece_end) {
  return piece_end != 0 && region.next() == behind(piece_end);
}

// Leaves the region up to the piece's end to the cursor: no other block is allocated there, and no scope frees it.
void leave_to_cursor(ThreadState* state, TempRegion& region, std::uintptr_t piece_end) {
  state->pinned = behind(piece_end);
  go_on_at(region, state->pinned);
}

}  // namespace

void* take_outside(ThreadState* state, const TempRegion& region, std::size_t size, std::size_t alignment) {
  if (state->outside.is_full()) {
    close_gaps(state);
  }
  if (!state->outside.make_room()) {
    return base::failed(ENOMEM);
  }
  void* const block = allocate_outside(state, size, alignment, static_cast<std::uint32_t>(state->outside.count()));
  return block == nullptr ? nullptr : enter_outside(state, region, block, size + (size == 0), alignment);
}

void touch_ahead(std::uintptr_t begin, std::uintptr_t end) {
  constexpr std::uintptr_t most = std::uintptr_t{32} << 10;
  constexpr std::uintptr_t page = base::least_page;
  end = std::min(end, begin + most);
  for (std::uintptr_t at = begin; at < end && !checks::is_watched(); at = (at / page + 1) * page) {
    *reinterpret_cast<volatile char*>(at) = 0;  // NOLINT: it was a pointer
  }
}

void prepare_temp(ThreadState* state) {
  ensure_region(state);
  const TempRegion& region = region_of(state);
  touch_ahead(region.next(), end_of(region));
  state->outside.prepare();  // else the first block that does not fit takes a system call and a page fault
}

bool is_frame_empty(ThreadState* state) {
  const TempRegion& region = region_of(state);
  note_demand(state, region);
  return state->peak_demand == 0 && region.peak == region.begin;
}

void end_temp_frame(ThreadState* state) {
  note_demand(state, region_of(state));
  const std::size_t demand = state->peak_demand;
  free_outside_after(state, 0);
  state->outside_ever = 0;
  state->peak_demand = 0;
  state->frame += 1;
  if (state->region == nullptr) {
    count_frame(state->figures, 0, demand);
    return;
  }
  TempRegion& region = region_of(state);
  note_peak(region);
  const std::size_t peak = region.peak - region.begin;
  hide_from(state, region, region.begin);
  count_frame(state->figures, peak, std::max(peak, demand));
  if (state->pinned != 0) {
    // Open cursors keep their pieces, and the region stays, until a frame ends without open cursors.
    go_on_at(region, state->pinned);
    region.peak = region.begin;
    return;
  }
  adapt_region(state, demand);
  start_region(state);
}

bool resize_temp(void* block, std::size_t old_size, std::size_t size, std::size_t alignment) {
  const std::size_t old_bytes = old_size + (old_size == 0);
  const std::size_t bytes = size + (size == 0);
  TempRegion& region = temp_region();
  const std::uintptr_t address = address_of(block);
  if (address % alignment == 0) {
    const bool inside = address - region.begin < region.bytes;
    const bool newest = address == region.last || address + old_bytes == region.next();
    if (inside && newest && bytes <= end_of(region) - address) {
      note_peak(region);
      go_on_at(region, behind_block(region, address, bytes, alignment));
      region.last = address;
      return true;
    }
    return bytes <= old_bytes && !checks::is_watched();
  }
  return false;
}

void* by_temp_allocate_slow(std::size_t size, std::size_t alignment) noexcept { return allocate_slow(size, alignment); }

void by_temp_deallocate_slow(void* block) noexcept {
  if (block == nullptr) {
    return;
  }
  ThreadState* const state = this_thread;
  if (state != nullptr && checks::is_watched()) {
    TempRegion& region = state->watched_temp;
    if (address_of(block) - region.begin < region.bytes) {
      free_watched(state, region, block);
      return;
    }
  }
  if (address_of(block) - temp_region().begin < temp_region().bytes) {
    return;  // of an earlier frame or scope: not checked here
  }
  free_outside_block(state, block);
}

void by_temp_deallocate_sized_slow(void* block, std::size_t) noexcept { by_temp_deallocate_slow(block); }

// The pieces of temp_cursor: cut from the thread's region like one large block, and given back if nothing came behind.

std::size_t by_temp_cursor_open() noexcept {
  ThreadState* const state = ensure_thread();
  if (state == nullptr || checks::is_watched()) {
    return 0;
  }
  return state->open_cursors += 1;
}

TempCut by_temp_cursor_cut(std::uintptr_t next, std::uintptr_t end, std::size_t size, std::size_t alignment,
                           std::size_t granularity, std::size_t depth) noexcept {
  ThreadState* const state = this_thread;
  TempRegion& region = temp_region();
  const std::size_t strictest = std::max(alignment, granularity);
  if (region.begin == 0 || depth == 0 || !is_valid_alignment(alignment)) {
    // The thread's first block, a watched process, or a bad alignment.
    return {by_temp_allocate_slow(size, is_valid_alignment(alignment) ? strictest : alignment), 0};
  }
  const bool goes_on = is_newest(region, end);
  if (goes_on) {
    go_on_at(region, next);
  }
  const std::uintptr_t block = round_up(region.next(), strictest);
  const std::size_t room = block < end_of(region) ? end_of(region) - block : 0;
  const std::size_t bytes = size <= room ? round_up(size + (size == 0), granularity) : size;
  if (bytes > room) {
    void* const outside = take_outside(state, region, size, strictest);
    if (goes_on) {
      leave_to_cursor(state, region, end);
    }
    return {outside, 0};
  }
  const std::uintptr_t piece_end = block + std::min(std::max(bytes, piece_of(region)), room);
  if (!goes_on && depth <= std::size(state->pinned_before)) {
    state->pinned_before[depth - 1] = state->pinned;
  }
  leave_to_cursor(state, region, piece_end);
  return {reinterpret_cast<void*>(block), piece_end};  // NOLINT: it was a pointer
}

void by_temp_cursor_close(std::uintptr_t next, std::uintptr_t end, std::size_t depth) noexcept {
  ThreadState* const state = this_thread;
  if (depth == 0 || state == nullptr || state->open_cursors == 0) {
    return;  // it never had a piece, or its thread ended
  }
  if (is_newest(temp_region(), end)) {
    go_on_at(temp_region(), next);
  }
  // If cursors end in the reverse order of their beginnings, each sets the pin back. In another order, or deeper than
  // pinned_before reaches, the pin may stay higher than it must until the last one ends. It is never too low: only the
  // newest piece is above what was pinned before it.
  const bool opened_last = state->open_cursors == depth;
  state->open_cursors -= 1;
  if (state->open_cursors == 0) {
    state->pinned = 0;
  } else if (opened_last && state->pinned == behind(end) && depth <= std::size(state->pinned_before)) {
    state->pinned = state->pinned_before[depth - 1];
  }
}

}  // namespace blockyard::lifetime

using namespace blockyard::lifetime;

extern "C" {

void by_thread_end_frame(void) {
  if (this_thread != nullptr) {
    end_temp_frame(this_thread);
  }
}

by_temp_mark by_temp_mark_now(void) {
  ThreadState* const state = ensure_thread();
  if (state == nullptr) {
    return {0, 0, 0};  // of no frame
  }
  const TempRegion& region = region_of(state);
  return {state->frame, region.next() - region.begin, state->outside_ever};
}

void by_temp_rewind(by_temp_mark mark) {
  ThreadState* const state = this_thread;
  if (state == nullptr || mark.frame != state->frame) {
    return;
  }
  if (state->demand != 0) {
    note_demand(state, region_of(state));
  }
  free_outside_after(state, mark.outside);
  TempRegion& region = region_of(state);
  if (mark.position >= region.next() - region.begin) {
    return;
  }
  const std::uintptr_t position = std::max(region.begin + mark.position, state->pinned);
  if (position < region.next()) {
    note_peak(region);
    hide_from(state, region, position);
    go_on_at(region, position);
  }
}

uint64_t by_temp_frame(void) {
  const ThreadState* const state = ensure_thread();
  return state != nullptr ? state->frame : 0;
}

int by_temp_configure(size_t region, size_t limit) {
  if (region < least_region || region > most_region_bytes || limit > most_region_bytes) {
    errno = EINVAL;
    return -1;
  }
  {
    const std::lock_guard lock(rare_lock);
    settings = {region, limit};
    settings_version.fetch_add(1, std::memory_order_relaxed);
  }
  if (ThreadState* const state = this_thread; state != nullptr && state->open_cursors == 0 && is_frame_empty(state)) {
    // A thread without a region gets it with its first block; without memory, blocks come from temp job.
    if (state->region == nullptr || !open_region(state)) {
      region_of(state) = {};
    }
  }
  return 0;
}

}  // extern "C"
