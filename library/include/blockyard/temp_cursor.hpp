/// temp_cursor: a loop's temp allocations with the bump pointer in registers.
///
///   blockyard::temp_cursor cursor;
///   for (Entity& entity : entities) {
///     entity.path = static_cast<Step*>(cursor.allocate(entity.steps * sizeof(Step)));
///   }
///
/// temp_allocate() loads and stores the thread's bump pointer for each block. A cursor claims a *piece* of the thread's
/// region, allocates from it by an addition and a comparison, and gives back the unused rest when it ends.
#ifndef BLOCKYARD_TEMP_CURSOR_HPP
#define BLOCKYARD_TEMP_CURSOR_HPP

#include <cstddef>
#include <cstdint>

#include "blockyard/temp.hpp"

namespace blockyard {
namespace lifetime {

/// A block that was cut for a cursor.
struct TempCut {
  void* block;
  std::uintptr_t end;  ///< end of the cursor's new piece, which goes on behind the block; 0: the piece did not change
};

// These take values, not the cursor: a cursor whose address is taken cannot stay in registers.
extern "C" {
/// Opens a cursor. Returns how many the thread has open now, or 0 in a checked or observed process.
BY_API std::size_t by_temp_cursor_open() noexcept;
/// A block for a cursor whose bump pointer is `next` and whose piece, up to `end`, is too short for it.
BY_API TempCut by_temp_cursor_cut(std::uintptr_t next, std::uintptr_t end, std::size_t size, std::size_t alignment,
                                  std::size_t granularity, std::size_t depth) noexcept;
/// Closes a cursor and gives its piece back from `next` on.
BY_API void by_temp_cursor_close(std::uintptr_t next, std::uintptr_t end, std::size_t depth) noexcept;
}

}  // namespace lifetime

/// A local variable of the thread that allocates. Its blocks are ordinary temp blocks: they end with the frame or
/// scope, and temp_deallocate() and reallocate() take them. Each is aligned to `Alignment` and takes a multiple of it.
///
/// While a cursor is open, anything is allowed. Other temp blocks, scopes and cursors take memory behind its piece (64
/// KiB, or a quarter of a smaller region). The unused rest of the piece is used again unless something was allocated
/// behind it. A scope that began later frees the cursor's memory only after the cursor ended. When the frame ends, the
/// cursor's blocks so far are gone, later ones belong to the new frame, and the region does not grow. Cursors may end
/// in any order.
template <std::size_t Alignment = alignof(std::max_align_t)>
class temp_cursor {
  static_assert(lifetime::is_valid_alignment(Alignment));

 public:
  temp_cursor() noexcept : depth_(lifetime::by_temp_cursor_open()) {}
  ~temp_cursor() {
    std::uintptr_t room = room_;
    asm("" : "+r"(room));  // or GCC computes the argument below at each allocation
    lifetime::by_temp_cursor_close(end_ - room, end_, depth_);
  }
  temp_cursor(const temp_cursor&) = delete;
  temp_cursor& operator=(const temp_cursor&) = delete;

  /// As temp_allocate(). O(1), with a call once per piece and for blocks that do not fit the region. Always inline: a
  /// call would take the cursor's address, and so keep it in memory.
  [[nodiscard, gnu::always_inline]] void* allocate(std::size_t size, std::size_t alignment = Alignment) noexcept {
    if (lifetime::is_valid_alignment(alignment)) [[likely]] {
      std::uintptr_t room = room_;
      std::uintptr_t begin = end_ - room;
      bool inside = true;
      if (alignment > Alignment) [[unlikely]] {
        const std::uintptr_t padding = (0 - begin) & (alignment - 1);
        inside = padding <= room;
        begin += padding;
        room -= padding;
        asm("" : "+r"(begin), "+r"(room));  // keeps the branch, as in temp_allocate()
      }
      bool fits = false;
      if (__builtin_constant_p(size) != 0) {
        const std::size_t taken = taken_by(size);
        fits = size < lifetime::most_region_bytes && taken <= room;  // fewer instructions for a known size
        room -= taken;
      } else {
        // Carries exactly if the block fits, as in temp_allocate().
        std::size_t minus_taken = (0 - size) & (0 - Alignment);
        asm("" : "+r"(minus_taken));  // or GCC turns the carry into a number and branches on that
        fits = __builtin_add_overflow(room, minus_taken, &room);
      }
      if (inside && fits) [[likely]] {
        room_ = room;
        return reinterpret_cast<void*>(begin);  // NOLINT: it was a pointer
      }
    }
    const lifetime::TempCut cut = lifetime::by_temp_cursor_cut(next(), end_, size, alignment, Alignment, depth_);
    if (cut.end != 0) {
      const auto begin = reinterpret_cast<std::uintptr_t>(cut.block);
      begin_ = begin == next() ? begin_ : begin;
      end_ = cut.end;
      room_ = end_ - (begin + taken_by(size));
    }
    return cut.block;
  }

  /// As temp_deallocate(). Does nothing for a block of the cursor's current run.
  [[gnu::always_inline]] void deallocate(void* block) noexcept {
    if (!is_own(block)) [[unlikely]] {
      by_lifetime_free(block, BY_TEMP);  // a call: inline code would need registers
    }
  }

  /// The same for callers that know the size. Frees in reverse order of the allocations take every block back.
  BY_THREAD_LOCAL_ACCESS void deallocate(void* block, std::size_t size) noexcept {
    if (!is_own(block)) {
      temp_deallocate(block, size);
      return;
    }
    const auto address = reinterpret_cast<std::uintptr_t>(block);
    if (address + taken_by(size) == next()) {
      lifetime::TempRegion& region = lifetime::temp_region();
      region.peak = next() > region.peak ? next() : region.peak;
      room_ = end_ - address;
    }
  }

 private:
  [[nodiscard]] std::uintptr_t next() const noexcept { return end_ - room_; }
  [[nodiscard]] bool is_own(void* block) const noexcept {
    return reinterpret_cast<std::uintptr_t>(block) - begin_ < next() - begin_;
  }
  static constexpr std::size_t taken_by(std::size_t size) noexcept {
    return lifetime::round_up(size + (size == 0), Alignment);
  }

  std::size_t depth_;         ///< open cursors of the thread when it began, itself included
  std::uintptr_t begin_ = 0;  ///< where its current run of adjacent blocks begins
  std::uintptr_t room_ = 0;   ///< bytes from where the next block begins, a multiple of `Alignment`, to `end_`
  std::uintptr_t end_ = 0;    ///< end of its piece
};

}  // namespace blockyard

#endif
