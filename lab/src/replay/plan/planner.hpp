// Turns a journal's events into a plan: the preamble, each thread's ops, slots, and what waits for what.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "journal/event.hpp"
#include "journal/flat_map.hpp"
#include "replay/plan/file_array.hpp"
#include "replay/plan/plan_format.hpp"
#include "replay/plan/plan_writer.hpp"
#include "replay/plan/route_plan.hpp"
#include "replay/plan/slots.hpp"

namespace blockyard::replay {

struct PlanOptions {
  std::optional<double> from_s = {};  ///< the stretch begins with the first event at or after this journal time
  std::optional<double> to_s = {};    ///< and ends before the first event at or after this one
  bool one_thread = false;            ///< all threads' events on one thread, in the journal's order
};

struct FrameMark {
  std::uint64_t time_ns;  ///< of the replay's clock, at 1x
  std::uint32_t event;
  std::uint32_t thread;
};

struct PhaseMark {
  std::uint64_t time_ns;  ///< of the replay's clock, at 1x; 0 for the phase in which the stretch begins
  std::uint32_t event;
  std::uint32_t name;  ///< index into the journal's names
};

struct PlanFacts {
  PlanHeader header{};
  std::uint32_t idle_threads = 0;   ///< threads of the plan that have nothing but a preamble
  std::uint64_t first_event = 0;    ///< number of the stretch's first event
  std::uint64_t remote_frees = 0;   ///< measured frees and reallocates of another thread's block
  std::uint64_t waits = 0;          ///< ops that wait for an op of another thread
  std::uint64_t largest_bytes = 0;  ///< largest block
};

/// Each plan has one. Feed events in order, then call finish(). Memory: about 80 bytes for each live block, 96 KiB per
/// thread and 16 bytes per frame mark, however long the journal is. Meanwhile a file of 4 bytes per event, without a
/// name, lies on the plan's disk. add() is O(1) per event, and O(n log n) in the live blocks at a stretch's beginning.
/// Throws journal::Error.
class Planner {
 public:
  /// `reroutes`: what a review of the same events found, for a plan with routes.
  Planner(const std::string& plan_path, const PlanOptions& options, Reroutes reroutes = {});

  /// `preamble_events`: so many of the journal's first events are preamble, whatever the options say, as far as is
  /// known by now. Returns false at the stretch's end: no more events are needed.
  bool add(std::span<const journal::Event> events, std::uint64_t preamble_events);

  /// Writes the rest of the plan. `paced`: the journal's times are real.
  PlanFacts finish(bool paced);

  /// What pairs.npy and frames.npy hold, after finish(). pair() has for each event number the event that frees its
  /// block, for a free the event that gave it, or `none`. A reallocate has its new block's end.
  [[nodiscard]] std::span<const std::uint32_t> pair() const { return pair_.all(); }
  [[nodiscard]] const std::vector<FrameMark>& frames() const { return frames_; }
  /// The phases of the stretch, in order; the first may have begun before it.
  [[nodiscard]] const std::vector<PhaseMark>& phases() const { return phases_; }
  /// Empty without routes.
  [[nodiscard]] const std::vector<PlanRoute>& routes() const { return routes_.routes(); }

 private:
  struct Block {
    std::uint64_t size = 0;
    std::uint64_t id = 0;             ///< the journal's block number
    std::uint32_t giver = none;       ///< event that gave it
    std::uint32_t last_event = none;  ///< last event on its slot
    std::uint16_t giver_thread = 0;
    std::uint16_t last_thread = 0;
    journal::Kind kind = journal::Kind::allocate;
    std::uint8_t alignment_log2 = natural_alignment_log2;
    bool alive = false;
  };

  void allocate(const journal::Event& event, std::uint32_t number, std::uint32_t thread);
  void free(const journal::Event& event, std::uint32_t number, std::uint32_t thread);
  void reallocate(const journal::Event& event, std::uint32_t number, std::uint32_t thread);
  void begin_stretch(std::uint64_t time_ns, std::uint32_t number);
  void end_without_measured_event() const;
  /// Removes the block from the live ones.
  std::uint32_t take_slot(std::uint64_t block, std::uint32_t number);
  void count_live(std::uint64_t gone, std::uint64_t come);
  void emit(const journal::Event& event, std::uint32_t number, std::uint32_t thread, std::uint32_t slot,
            std::uint32_t after, std::uint64_t size, std::uint8_t alignment_log2);
  /// Appends the op with the time since the thread's previous one.
  void append(std::uint64_t event_ns, std::uint32_t thread, Op op);
  /// `none` for a slot without a route.
  [[nodiscard]] std::uint32_t route_of(std::uint32_t slot) const;
  /// The slot's previous event, if this thread must wait for it; else `none`.
  std::uint32_t awaited(const Block& block, std::uint32_t thread);

  PlanOptions options_;
  std::uint64_t from_ns_ = 0;
  std::uint64_t to_ns_ = 0;
  PlanWriter writer_;
  PlanFacts facts_;
  Slots slots_;
  RoutePlan routes_;
  std::vector<Block> blocks_;                      ///< by slot
  std::uint64_t next_block_ = 0;                   ///< the journal's number of the block that comes next
  journal::FlatMap<std::uint32_t> slot_of_block_;  ///< blocks alive: by their number plus 1
  FileArray pair_;
  std::vector<FrameMark> frames_;
  std::vector<PhaseMark> phases_;
  std::vector<std::uint64_t> last_ns_;  ///< by thread: time of its last op
  std::uint64_t live_bytes_ = 0;
  std::uint64_t live_blocks_ = 0;
  std::uint64_t last_time_ns_ = 0;
  std::uint64_t preamble_events_ = 0;
  bool measuring_ = false;
  bool ended_ = false;
};

}  // namespace blockyard::replay
