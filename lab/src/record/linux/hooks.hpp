// What the hooks of allocation functions have in common: they call the real function and record the call. The stamp
// must be taken before the program gives a block up, and after it gets one (docs/design/recorder.md).
#pragma once

#include <cstddef>
#include <cstdint>

#include "record/linux/asleep.hpp"
#include "record/linux/recorder.hpp"

namespace blockyard::record {

// Calls a real function so that its own calls are not recorded a second time, then records the block.
template <typename Call>
void* allocate(RecordKind kind, std::size_t size, std::size_t alignment, const void* frame, Call call) {
  if (is_asleep() || self.busy != 0) return call();
  const Busy busy;
  void* block = call();
  record_allocation(kind, block, size, alignment, frame);
  return block;
}

template <Owner owner = Owner::malloc, typename Call>
void* reallocate(void* old_block, std::size_t size, const void* frame, Call call) {
  if (is_asleep() || self.busy != 0) return call();
  if (old_block == nullptr) return allocate(RecordKind::allocate, size, 0, frame, call);
  const Busy busy;
  if (!hooks_ready()) return call();
  if (owner == Owner::malloc && __builtin_expect(process->usable_size != nullptr, 0)) {
    append<When::before>(pack(RecordKind::reallocate_begin_of_size, reinterpret_cast<std::uintptr_t>(old_block)),
                         process->usable_size(old_block));
  } else {
    append<When::before>(pack(RecordKind::reallocate_begin, reinterpret_cast<std::uintptr_t>(old_block)));
  }
  void* block = call();
  // A null result for size 0 is a free. For any other size it is a failure, and the old block is unchanged.
  append_event<When::after>(pack(RecordKind::reallocate_end, reinterpret_cast<std::uintptr_t>(block)),
                            pack_size(size, 0), frame);
  if (__builtin_expect(limits_are_watched, 0)) {
    watch_event(size == 0 ? RecordKind::free : RecordKind::reallocate_end, size);
  }
  return block;
}

/// Gives a block back by `call`.
template <Owner owner = Owner::malloc, typename Call>
void release(void* block, const void* frame, Call call) {
  if (is_asleep() || self.busy != 0) {
    call();
    return;
  }
  const Busy busy;
  record_free<owner>(block, frame);
  call();
}

/// Gives a block back to the real allocator.
inline void release(void* block, const void* frame) {
  release(block, frame, [block] { real.free(block); });
}

}  // namespace blockyard::record
