/// A run of temp allocations whose place stays in registers.
///
///   blockyard::temp_cursor cursor;
///   for (Entity& entity : entities) {
///     entity.path = static_cast<Step*>(cursor.allocate(entity.steps * sizeof(Step)));
///   }
///
/// temp_allocate() loads the thread's place and stores it again with each block. A cursor takes a piece of the thread's
/// region for itself, in which a block costs an addition and a comparison, and hands back what it did not use when it
/// ends.
#ifndef BLOCKYARD_TEMP_CURSOR_HPP
#define BLOCKYARD_TEMP_CURSOR_HPP

#include <cstddef>
#include <cstdint>

#include "blockyard/temp.hpp"

namespace blockyard {
namespace lifetime {

struct TempCut {
  void* block;
  std::uintptr_t end;  ///< of the cursor's piece, which goes on behind the block; 0: its piece is as before
};

// Whatever passes here passes in registers, and a cursor whose address nobody knows stays in them.
extern "C" {
/// How many cursors of the thread are open now, this one included; 0 in a process that is checked or observed.
BY_API std::size_t by_temp_cursor_open() noexcept;
/// A block for a cursor that stands at `next` and whose piece, up to `end`, has no room for it.
BY_API TempCut by_temp_cursor_cut(std::uintptr_t next, std::uintptr_t end, std::size_t size, std::size_t alignment,
                                  std::size_t granularity, std::size_t depth) noexcept;
BY_API void by_temp_cursor_close(std::uintptr_t next, std::uintptr_t end, std::size_t depth) noexcept;
}

}  // namespace lifetime

/// Used by the thread that made it, as a local variable. Its blocks are temp blocks like any other: they go with the
/// frame or the scope, and may be given to temp_deallocate() and reallocate(). Each is aligned to `Alignment` and takes
/// a multiple of it, so that the next place needs no rounding.
///
/// Anything may happen while it is open. Other temp blocks, scopes and cursors take their memory behind its piece (64
/// KiB, or a quarter of a smaller region); what is left of it at the cursor's end is used again unless something came
/// behind. A scope that began later leaves the cursor's memory alone until the cursor ends. When the frame ends, the
/// blocks that it gave are gone, those that it gives afterwards are of the new frame, and the region does not grow.
/// Cursors may end in any order.
template <std::size_t Alignment = alignof(std::max_align_t)>
class temp_cursor {
  static_assert(lifetime::is_valid_alignment(Alignment));

 public:
  temp_cursor() noexcept : depth_(lifetime::by_temp_cursor_open()) {}
  ~temp_cursor() {
    std::uintptr_t room = room_;
    asm("" : "+r"(room));  // or GCC computes with each block what is asked for here
    lifetime::by_temp_cursor_close(end_ - room, end_, depth_);
  }
  temp_cursor(const temp_cursor&) = delete;
  temp_cursor& operator=(const temp_cursor&) = delete;

  /// As temp_allocate(), bounds and failures too: O(1); a call once in a piece, and for what does not fit the region.
  /// Always inline: a call, which compilers make where an alignment is known at run time only, would get the cursor's
  /// address and so keep it in memory.
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
        asm("" : "+r"(begin), "+r"(room));  // a branch, as in temp_allocate()
      }
      bool fits = false;
      if (__builtin_constant_p(size) != 0) {
        const std::size_t taken = taken_by(size);
        fits = size < lifetime::most_region_bytes && taken <= room;  // of a known size, fewer instructions
        room -= taken;
      } else {
        // What the block takes, negative: as there, it carries if, and only if, there is room.
        std::size_t minus_taken = (0 - size) & (0 - Alignment);
        asm("" : "+r"(minus_taken));  // or GCC makes a number of the carry, and a branch of that
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

  /// As temp_deallocate(), and faster for what lies in the cursor's newest row of blocks: it stays.
  [[gnu::always_inline]] void deallocate(void* block) noexcept {
    if (!is_own(block)) [[unlikely]] {
      by_lifetime_free(block, BY_TEMP);  // a call: in place it would cost the others registers
    }
  }

  /// The same for callers that know the size: frees in the reverse order of the allocations take every block back.
  BY_THREAD_LOCAL_ACCESS void deallocate(void* block, std::size_t size) noexcept {
    if (!is_own(block)) {
      temp_deallocate(block, size);
      return;
    }
    const auto address = reinterpret_cast<std::uintptr_t>(block);
    if (address + taken_by(size) == next()) {
      lifetime::TempRegion& region = lifetime::by_temp_region;
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

  std::size_t depth_;
  std::uintptr_t begin_ = 0;  ///< of what it allocated in one row
  std::uintptr_t room_ = 0;   ///< bytes from where the next block begins, a multiple of `Alignment`, to `end_`
  std::uintptr_t end_ = 0;    ///< of its piece
};

}  // namespace blockyard

#endif
