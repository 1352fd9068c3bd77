// Replaying with routes: blocks of a routed slot come from the library's own allocators, driven by their own code.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "blockyard/lifetime.h"
#include "blockyard/static_block_allocator.hpp"
#include "blockyard/temp.hpp"
#include "journal/routes.hpp"
#include "replay/plan/plan_file.hpp"
#include "replay/run/process_memory.hpp"
#include "replay/run/session.hpp"

namespace blockyard::replay {

/// What StaticBlockAllocator<Size, Alignment> is, for a size known only at run time. Any thread.
class BlockPool {
 public:
  BlockPool() = default;
  BlockPool(std::size_t size, std::size_t alignment)
      : stride_(block::stride_of(size, alignment)),
        slot_(stride_ <= block::small_stride ? static_cast<std::uint32_t>(stride_ / block::unit)
                                             : block::by_static_block_slot(stride_)),
        mask_(block::slab_mask_of(block::slab_shift_of(stride_))) {}

  [[nodiscard]] std::size_t stride() const { return stride_; }

  [[nodiscard]] void* allocate() const {
#if !(defined(BLOCKYARD_CHECKED) && BLOCKYARD_CHECKED)
    void* const ready = block::slab_take(block::thread_blocks()->current[slot_], stride_);
    if (ready != nullptr) return ready;
#endif
    return block::by_static_block_allocate(stride_);
  }

  void free(void* taken) const {
#if defined(BLOCKYARD_CHECKED) && BLOCKYARD_CHECKED
    block::by_static_block_free_checked(taken, stride_);
#else
    block::BlockSlab* const slab = block::slab_of(taken, mask_);
    if (slab->owner.load(std::memory_order_relaxed) != block::thread_blocks()) {
      block::by_static_block_free_remote(taken, slab);
    } else if (!block::slab_put(slab, taken, stride_)) {
      block::by_static_block_free_slow(slab);
    }
#endif
  }

 private:
  std::size_t stride_ = 0;
  std::uint32_t slot_ = 0;
  std::int32_t mask_ = 0;
};

/// A route of the plan, for all threads.
struct alignas(128) RunRoute {
  journal::RouteKind kind{};
  std::uint64_t bytes = 0;  ///< as journal::Route::bytes
  BlockPool pool;
  by_rewindable* arena = nullptr;
  std::span<const std::uint64_t> generations;  ///< blocks that have been freed when the arena is rewound, ascending
  alignas(128) std::atomic<std::uint64_t> freed{0};
  std::atomic<std::uint32_t> rewound{0};  ///< times
};

/// A route's part of one thread, which uses it alone.
struct RoutePart {
  std::uint64_t live = 0;        ///< temp_scope: blocks; the scope is open while there are some
  std::uint64_t overflowed = 0;  ///< temp and temp_scope: blocks that did not fit the region
  alignas(temp_scope) std::byte scope[sizeof(temp_scope)];
};

/// Of a slot on a reserve or keep route.
struct Buffer {
  void* kept = nullptr;     ///< keep: the buffer while the slot is empty
  std::uint64_t bytes = 0;  ///< what the buffer was asked with
  std::uint8_t alignment_log2 = 0;
};

/// What a run found out about a route.
struct RouteTotals {
  std::uint64_t region_peak_bytes = 0;  ///< most memory in use; 0 where the program's allocator has it
  std::uint64_t overflowed = 0;         ///< blocks that did not fit the thread's region
};

/// One per run with routes. Its own memory is populated when constructed.
class Rerouting {
 public:
  /// Sets the size of temp regions and makes the arenas. Throws journal::Error when the system lacks the memory.
  Rerouting(const PlanFile& plan, const Session& session);
  ~Rerouting();
  Rerouting(const Rerouting&) = delete;
  Rerouting& operator=(const Rerouting&) = delete;

  [[nodiscard]] std::span<const std::uint32_t> routes_of_groups() const { return routes_of_groups_; }
  [[nodiscard]] std::span<RunRoute> routes() const { return routes_; }
  /// Those of a thread, by route.
  [[nodiscard]] std::span<RoutePart> parts(std::size_t thread) const {
    return {parts_ + thread * routes_.size(), routes_.size()};
  }
  /// By slot; none without reserve and keep routes.
  [[nodiscard]] Buffer* buffers() const { return buffers_; }

  /// Once the clock has stopped: frees the block of a routed slot. False for a slot without a route.
  bool release(const Session& session, Slot& slot) const;
  /// Once the clock has stopped: puts what keep routes kept into its slots, as blocks of no size.
  void surrender_kept(const Session& session) const;

  /// Reads the library's statistics. Call it when the clock has stopped and again when all threads have ended: each
  /// time some of its peaks are known.
  void note_peaks();
  /// By route.
  [[nodiscard]] const std::vector<RouteTotals>& totals() const { return totals_; }

 private:
  [[nodiscard]] std::uint64_t peak_of(const RunRoute& route) const;

  std::span<const std::uint32_t> routes_of_groups_;
  std::size_t threads_;
  std::size_t slots_;
  PopulatedMemory route_memory_;
  PopulatedMemory part_memory_;
  PopulatedMemory buffer_memory_;
  std::span<RunRoute> routes_;
  RoutePart* parts_ = nullptr;
  Buffer* buffers_ = nullptr;
  std::vector<RouteTotals> totals_;
};

/// Ends the run: the library gave no memory for `event`.
[[noreturn]] void route_out_of_memory(std::uint32_t event, std::uint64_t size);

}  // namespace blockyard::replay
