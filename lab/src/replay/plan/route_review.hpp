// Before a journal is planned with routes: which of the listed blocks can go their way, and which break the advice and
// stay on the program's allocator.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "journal/event.hpp"
#include "journal/flat_map.hpp"
#include "journal/routes.hpp"
#include "replay/plan/growth.hpp"
#include "replay/plan/plan_format.hpp"

namespace blockyard::replay {

/// A block that goes its way. The blocks that reallocates make of it go with it.
struct ReroutedBlock {
  std::uint32_t event;       ///< that allocates it
  std::uint32_t route;       ///< index in the file
  std::uint32_t generation;  ///< rewindable: how often its arena is rewound before
};

/// What a review found. The planner fills in the routes' peaks.
struct Reroutes {
  std::vector<ReroutedBlock> blocks;       ///< ascending by event
  std::vector<PlanRoute> routes;           ///< in the file's order
  std::vector<std::uint64_t> generations;  ///< as PlanFile::generations()
  std::vector<std::uint32_t> growths;      ///< of chains that are rerouted; see Growth
  std::vector<bool> shared;                ///< by route: more than one thread has a part in its blocks
  std::uint32_t frame_thread = none;       ///< the journal's thread that marks most frames; `none` without marks
  bool ends_frames = false;                ///< some block lies in memory that ends with a frame
};

/// A *chain* is a block and what reallocates make of it, and goes one way as a whole. Feed all events in order, then
/// call finish(). Memory: 8 bytes for each listed block, 24 for each chain of the stretch and 8 for each of its
/// reallocates. add() is O(1) per event, finish() O(n log n) in the chains. Throws journal::Error.
class RouteReview {
 public:
  /// `path` names the routes in messages; the times are those of PlanOptions.
  RouteReview(journal::Routes routes, std::string path, std::optional<double> from_s, std::optional<double> to_s);

  /// As Planner::add().
  bool add(std::span<const journal::Event> events, std::uint64_t preamble_events);

  Reroutes finish();

 private:
  /// Ends of events are event numbers; `none` for a chain that nothing frees.
  struct Chain {
    std::uint32_t begin = 0;
    std::uint32_t end = none;
    std::uint32_t listed = 0;  ///< blocks of it that the file lists
    std::uint16_t thread = 0;
    std::uint16_t route = 0;
    std::optional<Refusal> refusal = {};
    bool remote = false;  ///< another thread frees or reallocates a part
  };
  /// An event at which a chain needs memory: its allocation, or a reallocate.
  struct Need {
    std::uint32_t event;
    std::uint32_t chain;
  };

  void allocate(const journal::Event& event, std::uint32_t number);
  Chain& begin(const journal::Event& event, std::uint32_t number, std::uint16_t route);
  /// The chain of the old block, if it is of any.
  std::optional<std::uint32_t> reallocate(const journal::Event& event, std::uint32_t number);
  void end(const journal::Event& event, std::uint32_t number);
  /// The route that the file lists for the event, if any. Events come in order.
  std::optional<std::uint16_t> listed_route(std::uint32_t number);
  /// Keeps the first reason.
  static void refuse(Chain& chain, Refusal why);
  void require_thread(Chain& chain, const journal::Event& event);
  void require_fit(Chain& chain, const journal::Event& event) const;
  [[nodiscard]] journal::RouteKind kind_of(const Chain& chain) const { return routes_.routes[chain.route].kind; }

  void choose_frame_thread();
  void refuse_by_frames();
  void refuse_by_scopes();
  bool scopes_nest();
  void find_generations(const std::vector<std::uint32_t>& admitted);

  journal::Routes routes_;
  std::string path_;
  std::uint64_t from_ns_;
  std::optional<std::uint64_t> to_ns_;
  Growth growth_;
  std::uint64_t events_ = 0;  ///< so far
  std::size_t next_listed_ = 0;
  journal::FlatMap<std::uint32_t> chain_of_block_;  ///< live blocks of chains, by their number plus 1
  std::vector<Chain> chains_;        ///< those of the stretch in the order of their beginnings, behind older ones
  std::vector<std::uint32_t> over_;  ///< before the stretch: chains whose places are free
  std::vector<Need> reallocates_;    ///< of temp and temp_scope chains
  std::vector<Need> growths_;        ///< of the stretch: where a chain's block grows by an allocation
  std::vector<std::vector<std::uint32_t>> marks_;  ///< events of the stretch, by thread
  bool measuring_ = false;
  bool ended_ = false;
  Reroutes found_;
};

}  // namespace blockyard::replay
