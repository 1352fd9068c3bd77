// One thread's way through the routes: each call of the library, and the buffers of reserve and keep.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <new>
#include <type_traits>

#include "blockyard/frame.h"
#include "blockyard/lifetime.h"
#include "blockyard/temp.hpp"
#include "blockyard/temp_job.hpp"
#include "journal/event.hpp"
#include "replay/run/blocks.hpp"
#include "replay/run/pacer.hpp"
#include "replay/run/rerouting.hpp"
#include "replay/run/turn.hpp"

namespace blockyard::replay {

/// Whether a call is one of the program's allocator, which may need the run's lock.
using OfProgram = std::true_type;
using OfLibrary = std::false_type;

/// Lives on the thread's stack. What it calls goes through `measured(OfProgram or OfLibrary, call)`, which calls `call`
/// once: nothing else of an event is part of the measured time.
class ThreadRoutes {
 public:
  ThreadRoutes(Session& session, ReplayThread& thread)
      : session_(session),
        calls_(*session.adapter),
        slots_(session.slots),
        groups_(session.rerouting->routes_of_groups().data()),
        routes_(session.rerouting->routes().data()),
        parts_(session.rerouting->parts(thread.index).data()),
        buffers_(session.rerouting->buffers()) {}

  /// `none` where the program's allocator has the block.
  [[nodiscard]] std::uint32_t route_of(const Slot& slot) const {
    return groups_[static_cast<std::size_t>(&slot - slots_) / slot_group];
  }

  /// Carries out an event of a routed slot. Returns the block that the slot has then.
  template <typename Measured>
  void* carry_out(std::uint32_t number, const Record& record, const Slot& slot, Measured measured) {
    RunRoute& route = routes_[number];
    RoutePart& part = parts_[number];
    switch (static_cast<journal::Kind>(record.kind)) {
      case journal::Kind::free:
        free(route, part, slot, measured);
        return nullptr;
      case journal::Kind::reallocate:
        return given(route, record, reallocate(route, part, record, slot, measured));
      default:
        return given(route, record, allocate(route, part, record, slot, measured));
    }
  }

  /// Waits until the arena of the route was rewound as often as the record says.
  void await_rewind(const Record& record) const {
    const std::atomic<std::uint32_t>& rewound = routes_[record.order.slot].rewound;
    while (rewound.load(std::memory_order_acquire) < record.size()) sleep_shortly();
  }

  /// The end of a frame: the program's, or only the thread's own.
  static void end_frame(bool of_program) {
    if (of_program) {
      by_frame_end(0);
    } else {
      by_thread_end_frame();
    }
  }

 private:
  [[nodiscard]] void* given(const RunRoute& route, const Record& record, void* block) const {
    if (block == nullptr && record.size() != 0) [[unlikely]] {
      if (route.kind == journal::RouteKind::reserve || route.kind == journal::RouteKind::keep) {
        out_of_memory(session_, record.event, record.size());
      }
      route_out_of_memory(record.event, record.size());
    }
    return block;
  }

  static void* zeroed(void* block, bool wanted, std::uint64_t size) {
    if (wanted && block != nullptr) std::memset(block, 0, size);
    return block;
  }

  // A region that is empty gives no block: that is a process with checks, where nothing is known.
  static void count_overflow(RoutePart& part, const void* block) {
    const lifetime::TempRegion& region = lifetime::temp_region();
    if (region.bytes != 0 && reinterpret_cast<std::uintptr_t>(block) - region.begin >= region.bytes) ++part.overflowed;
  }

  template <typename Measured>
  void* allocate(RunRoute& route, RoutePart& part, const Record& record, const Slot& slot, Measured measured) {
    const std::uint64_t size = record.size();
    const std::size_t alignment = std::size_t{1} << record.alignment_log2;
    const bool zero = record.kind == static_cast<std::uint8_t>(journal::Kind::allocate_zeroed);
    void* block = nullptr;
    switch (route.kind) {
      case journal::RouteKind::temp:
        measured(OfLibrary(), [&] { block = zeroed(temp_allocate(size, alignment), zero, size); });
        count_overflow(part, block);
        break;
      case journal::RouteKind::temp_scope: {
        const bool opens = part.live++ == 0;
        measured(OfLibrary(), [&] {
          if (opens) new (part.scope) temp_scope;
          block = zeroed(temp_allocate(size, alignment), zero, size);
        });
        count_overflow(part, block);
        break;
      }
      case journal::RouteKind::temp_job:
        measured(OfLibrary(), [&] { block = zeroed(temp_job_allocate(size, alignment), zero, size); });
        break;
      case journal::RouteKind::block_pool:
        measured(OfLibrary(), [&] { block = zeroed(route.pool.allocate(), zero, size); });
        break;
      case journal::RouteKind::rewindable:
        measured(OfLibrary(), [&] { block = zeroed(by_rewindable_alloc(route.arena, size, alignment), zero, size); });
        break;
      case journal::RouteKind::reserve: {
        Buffer& buffer = buffer_of(slot);
        buffer = {nullptr, std::max(route.bytes, size), record.alignment_log2};
        measured(OfProgram(), [&] { block = program_allocate(buffer, zero); });
        break;
      }
      case journal::RouteKind::keep: {
        Buffer& buffer = buffer_of(slot);
        if (buffer.kept != nullptr && buffer.bytes >= size && buffer.alignment_log2 >= record.alignment_log2) {
          measured(OfLibrary(), [&] { block = zeroed(buffer.kept, zero, size); });
        } else {
          const Buffer old = buffer;
          buffer = {nullptr, size, record.alignment_log2};
          measured(OfProgram(), [&] {
            if (old.kept != nullptr) program_free(old.kept, old);
            block = program_allocate(buffer, zero);
          });
        }
        buffer.kept = nullptr;
        break;
      }
    }
    return block;
  }

  template <typename Measured>
  void free(RunRoute& route, RoutePart& part, const Slot& slot, Measured measured) {
    void* const block = slot.block;
    switch (route.kind) {
      case journal::RouteKind::temp:
        measured(OfLibrary(), [&] { temp_deallocate(block, slot.size); });
        break;
      case journal::RouteKind::temp_scope: {
        const bool closes = --part.live == 0;
        measured(OfLibrary(), [&] {
          temp_deallocate(block, slot.size);
          if (closes) std::launder(reinterpret_cast<temp_scope*>(part.scope))->~temp_scope();
        });
        break;
      }
      case journal::RouteKind::temp_job:
        measured(OfLibrary(), [&] { temp_job_deallocate(block); });
        break;
      case journal::RouteKind::block_pool:
        measured(OfLibrary(), [&] { route.pool.free(block); });
        break;
      case journal::RouteKind::rewindable: {
        const std::uint32_t generation = route.rewound.load(std::memory_order_relaxed);
        // Whoever frees the last block finds all others allocated and freed, whatever the order of the threads.
        const std::uint64_t freed = route.freed.fetch_add(1, std::memory_order_acq_rel) + 1;
        const bool last = generation < route.generations.size() && freed == route.generations[generation];
        measured(OfLibrary(), [&] {
          if (last) by_rewindable_rewind(route.arena);
        });
        if (last) route.rewound.store(generation + 1, std::memory_order_release);
        break;
      }
      case journal::RouteKind::reserve: {
        const Buffer& buffer = buffer_of(slot);
        measured(OfProgram(), [&] { program_free(block, buffer); });
        break;
      }
      case journal::RouteKind::keep:
        measured(OfLibrary(), [] {});
        buffer_of(slot).kept = block;
        break;
    }
  }

  template <typename Measured>
  void* reallocate(RunRoute& route, RoutePart& part, const Record& record, const Slot& slot, Measured measured) {
    const std::uint64_t size = record.size();
    const std::size_t alignment = std::size_t{1} << record.alignment_log2;
    void* block = slot.block;
    switch (route.kind) {
      case journal::RouteKind::temp:
      case journal::RouteKind::temp_scope:
        measured(OfLibrary(), [&] { block = by_lifetime_realloc(block, slot.size, size, alignment, BY_TEMP); });
        if (block != slot.block) count_overflow(part, block);
        break;
      case journal::RouteKind::temp_job:
        measured(OfLibrary(), [&] { block = by_lifetime_realloc(block, slot.size, size, alignment, BY_TEMP_JOB); });
        break;
      case journal::RouteKind::block_pool:
        measured(OfLibrary(), [] {});  // it fits, or the planner would have refused it
        break;
      case journal::RouteKind::rewindable:
        measured(OfLibrary(), [&] {
          void* const fresh = by_rewindable_alloc(route.arena, size, alignment);
          if (fresh != nullptr) std::memcpy(fresh, block, std::min(slot.size, size));
          block = fresh;
        });
        break;
      case journal::RouteKind::reserve:
      case journal::RouteKind::keep: {
        Buffer& buffer = buffer_of(slot);
        if (size <= buffer.bytes) {
          measured(OfLibrary(), [] {});
        } else {
          measured(OfProgram(), [&] {
            block = calls_.reallocate(block, buffer.bytes, std::size_t{1} << buffer.alignment_log2, size);
          });
          buffer = {nullptr, size, record.alignment_log2};
        }
        break;
      }
    }
    return block;
  }

  [[nodiscard]] Buffer& buffer_of(const Slot& slot) const { return buffers_[&slot - slots_]; }

  [[nodiscard]] void* program_allocate(const Buffer& buffer, bool zero) const {
    if (buffer.alignment_log2 > natural_alignment_log2) {
      return calls_.allocate_aligned(std::size_t{1} << buffer.alignment_log2, buffer.bytes);
    }
    return zero ? calls_.allocate_zeroed(buffer.bytes) : calls_.allocate(buffer.bytes);
  }

  void program_free(void* block, const Buffer& buffer) const {
    if ((calls_.flags & BY_ADAPTER_SIZED_FREE) != 0) {
      calls_.free_sized(block, buffer.bytes, std::size_t{1} << buffer.alignment_log2);
    } else {
      calls_.free(block);
    }
  }

  Session& session_;
  const by_adapter calls_;
  const Slot* const slots_;
  const std::uint32_t* const groups_;
  RunRoute* const routes_;
  RoutePart* const parts_;
  Buffer* const buffers_;
};

/// For for_each_event() and a plan with routes: pauses, waits for an arena, and ends of frames, which go to
/// `end_frame(turn, record)`.
template <typename EndFrame>
class SpecialOps {
 public:
  SpecialOps(const ThreadRoutes& routes, EndFrame end_frame) : routes_(routes), end_frame_(end_frame) {}

  static bool is_special(const Record& record) { return record.kind >= first_special_kind; }

  void operator()(auto& turn, Record& record) {
    if (record.kind == kind_pause) {
      turn.pause(record.size());
    } else if (record.kind == kind_frame_end) {
      end_frame_(turn, record);
    } else {
      turn.come_to(record.event);
      routes_.await_rewind(record);
    }
  }

 private:
  const ThreadRoutes& routes_;
  EndFrame end_frame_;
};

}  // namespace blockyard::replay
