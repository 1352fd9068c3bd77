// The part of planning that only a plan with routes needs: what goes which way, and when temp memory ends.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "journal/flat_map.hpp"
#include "journal/routes.hpp"
#include "replay/plan/plan_format.hpp"
#include "replay/plan/route_review.hpp"

namespace blockyard::replay {

/// The planner has one and feeds it the stretch in order. All members are amortised O(1), but kept_slot() looks at up
/// to 32 buffers. Memory: 16 bytes for each thread on each route, and 40 for each block with room to spare.
class RoutePlan {
 public:
  RoutePlan() = default;
  explicit RoutePlan(Reroutes reroutes);

  [[nodiscard]] bool empty() const { return found_.routes.empty(); }

  /// The rerouted block that event `number` allocates, or null. Events come in order.
  const ReroutedBlock* block_of(std::uint32_t number) {
    if (next_ == found_.blocks.size() || found_.blocks[next_].event != number) return nullptr;
    return &found_.blocks[next_++];
  }

  /// As Growth::planned().
  const journal::Event* planned(const journal::Event& event, std::uint32_t number) {
    return growth_.planned(event, number);
  }

  /// On a keep route: the empty slot whose buffer the block gets, or which gives its buffer up for it.
  std::optional<std::uint32_t> kept_slot(std::uint32_t route, std::uint32_t thread, std::uint64_t size,
                                         std::uint8_t alignment_log2);

  /// A block came into `slot`, by an allocation or by a reallocate of one with `old_size` bytes.
  void came(std::uint32_t route, std::uint32_t thread, std::uint32_t slot, std::uint64_t size, std::uint64_t old_size);
  /// The block in `slot` is freed. Returns whether its buffer stays in the slot, which is then no other block's.
  bool went(std::uint32_t route, std::uint32_t thread, std::uint32_t slot, std::uint64_t size,
            std::uint8_t alignment_log2);

  /// What the thread has to wait for before it allocates the block.
  std::optional<Op> wait_before(const ReroutedBlock& block, std::uint32_t thread);
  /// The end of temp memory that belongs before the thread's next event.
  std::optional<Op> frame_end_before(std::uint32_t thread);
  /// The end of the program's frame, if event `mark` of the thread is one and anything depends on it.
  std::optional<Op> frame_end_at(std::uint32_t mark, std::uint32_t thread);

  [[nodiscard]] std::uint64_t frame_ends() const { return frame_ends_; }
  /// Most bytes reserved or kept at once beyond what was asked for, of each route, added up.
  [[nodiscard]] std::uint64_t extra_bytes() const;
  [[nodiscard]] const std::vector<PlanRoute>& routes() const { return found_.routes; }
  /// As in a plan file, behind the frames.
  [[nodiscard]] std::string tables(const std::vector<std::uint32_t>& routes_of_groups) const;
  [[nodiscard]] std::uint32_t generations() const { return static_cast<std::uint32_t>(found_.generations.size()); }

 private:
  struct Kept {
    std::uint32_t slot;
    std::uint8_t alignment_log2;
  };
  struct Part {
    std::vector<Kept> kept;     ///< the newest last
    std::uint32_t awaited = 0;  ///< rewinds that the thread has waited for
  };
  struct Live {
    std::uint64_t bytes = 0;  ///< asked for
    std::uint64_t room = 0;   ///< reserve and keep: of all buffers
  };

  [[nodiscard]] journal::RouteKind kind_of(std::uint32_t route) const {
    return static_cast<journal::RouteKind>(found_.routes[route].kind);
  }
  Part& part(std::uint32_t route, std::uint32_t thread);
  void note_peaks(std::uint32_t route);

  Reroutes found_;
  Growth growth_;
  std::size_t next_ = 0;
  std::vector<std::vector<Part>> parts_;   ///< by route, then thread
  std::vector<Live> live_;                 ///< by route
  journal::FlatMap<std::uint64_t> rooms_;  ///< reserve and keep: bytes of the slot's buffer, by slot plus 1
  std::vector<std::uint64_t> temp_since_;  ///< by thread: marks before its temp memory was used, plus 1; 0: it was not
  std::uint64_t marks_ = 0;                ///< of the program's frames so far
  std::uint32_t last_mark_ = 0;            ///< event
  std::uint64_t frame_ends_ = 0;
};

}  // namespace blockyard::replay
