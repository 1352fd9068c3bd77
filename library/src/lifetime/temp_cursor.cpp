// The pieces of temp_cursor: cut from the thread's region like one large block, and given back if nothing came behind.
#include "blockyard/temp_cursor.hpp"

#include <algorithm>
#include <iterator>

#include "checks/watched.hpp"
#include "lifetime/temp.hpp"

namespace blockyard::lifetime {
namespace {

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
