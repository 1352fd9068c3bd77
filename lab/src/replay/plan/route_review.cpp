#include "replay/plan/route_review.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include "blockyard/block.h"
#include "blockyard/lifetime.h"

namespace blockyard::replay {
namespace {

using journal::Event;
using journal::Kind;
using journal::RouteKind;
using journal::to_ns;

constexpr std::uint32_t forever = none;
static_assert(forever == std::numeric_limits<std::uint32_t>::max(), "an end that no event comes after");

constexpr std::uint64_t most_pool_bytes = std::uint64_t{1} << 20;
constexpr std::uint64_t most_pool_alignment = std::uint64_t{32} << 10;
/// The largest block that temp can put into memory of temp job when it does not fit the region.
constexpr std::uint64_t most_lifetime_bytes = std::uint64_t{1} << 28;
constexpr std::uint32_t job_frames = 4;

bool is_temp(RouteKind kind) { return kind == RouteKind::temp || kind == RouteKind::temp_scope; }
/// Whether the memory is of one thread.
bool is_local(RouteKind kind) { return is_temp(kind) || kind == RouteKind::keep; }

/// Whether the end of a frame matters to it.
bool ends_with_frames(RouteKind kind) { return is_temp(kind) || kind == RouteKind::temp_job; }

std::uint64_t alignment_of(const Event& event) { return event.kind == Kind::allocate_aligned ? event.alignment : 16; }

std::string number_text(std::uint64_t number) { return std::to_string(number); }

}  // namespace

RouteReview::RouteReview(journal::Routes routes, std::string path, std::optional<double> from_s,
                         std::optional<double> to_s)
    : routes_(std::move(routes)), path_(std::move(path)), from_ns_(to_ns(from_s.value_or(0))) {
  if (to_s) to_ns_ = to_ns(*to_s);
  for (const journal::Route& route : routes_.routes) {
    PlanRoute plan{};
    plan.bytes = route.bytes;
    plan.group = route.group;
    plan.kind = static_cast<std::uint8_t>(route.kind);
    plan.alignment_log2 = std::max(route.alignment_log2, natural_alignment_log2);
    found_.routes.push_back(plan);
  }
  found_.shared.resize(routes_.routes.size());
  std::vector<std::uint32_t> growths;
  for (const journal::RoutedBlock& block : routes_.blocks) {
    if (block.grows != 0) growths.push_back(block.event);
  }
  std::erase_if(routes_.blocks, [](const journal::RoutedBlock& block) { return block.grows != 0; });
  growth_ = Growth(std::move(growths));
}

bool RouteReview::add(std::span<const Event> events, std::uint64_t preamble_events) {
  for (const Event& read : events) {
    const bool measured = events_ >= preamble_events && read.time_ns >= from_ns_;
    if (measured && to_ns_ && read.time_ns >= *to_ns_) {
      ended_ = true;
      return false;
    }
    if (events_ >= max_events) {  // the planner has a sentence for it
      ended_ = true;
      return false;
    }
    const auto number = static_cast<std::uint32_t>(events_++);
    if (measured && !measuring_) {
      measuring_ = true;
      for (Chain& chain : chains_) chain.refusal = Refusal::preamble;
      for (const std::uint32_t over : over_) chains_[over].listed = 0;
      over_.clear();
    }
    const Event* const planned = growth_.planned(read, number);
    if (planned == nullptr) continue;
    const Event& event = *planned;
    switch (event.kind) {
      case Kind::allocate:
      case Kind::allocate_zeroed:
      case Kind::allocate_aligned:
        allocate(event, number);
        break;
      case Kind::reallocate:
        if (const auto chain = reallocate(event, number); chain && &event != &read && measuring_) {
          growths_.push_back({growth_.allocation(), *chain});
        }
        break;
      case Kind::free:
        end(event, number);
        break;
      case Kind::frame_mark:
        if (measuring_) {
          if (event.thread >= marks_.size()) marks_.resize(event.thread + std::size_t{1});
          marks_[event.thread].push_back(number);
        }
        break;
      case Kind::phase_mark:
        break;
    }
    if (next_listed_ < routes_.blocks.size() && routes_.blocks[next_listed_].event <= number) {
      throw journal::Error(path_ + " lists event " + number_text(routes_.blocks[next_listed_].event) +
                           ", which gives no block; it belongs to another journal");
    }
  }
  return true;
}

std::optional<std::uint16_t> RouteReview::listed_route(std::uint32_t number) {
  if (next_listed_ == routes_.blocks.size() || routes_.blocks[next_listed_].event != number) return {};
  return routes_.blocks[next_listed_++].route;
}

void RouteReview::allocate(const Event& event, std::uint32_t number) {
  const std::optional<std::uint16_t> route = listed_route(number);
  if (route) begin(event, number, *route);
}

RouteReview::Chain& RouteReview::begin(const Event& event, std::uint32_t number, std::uint16_t route) {
  auto index = static_cast<std::uint32_t>(chains_.size());
  if (over_.empty()) {
    chains_.emplace_back();
  } else {
    index = over_.back();
    over_.pop_back();
  }
  Chain& chain = chains_[index];
  chain = {.begin = number, .listed = 1, .thread = static_cast<std::uint16_t>(event.thread), .route = route};
  require_fit(chain, event);
  chain_of_block_.insert(event.block + 1, index);
  return chain;
}

std::optional<std::uint32_t> RouteReview::reallocate(const Event& event, std::uint32_t number) {
  const std::optional<std::uint16_t> route = listed_route(number);
  std::uint32_t index = 0;
  if (!chain_of_block_.take(event.old_block + 1, index)) {
    if (route) begin(event, number, *route).refusal = Refusal::split;
    return {};
  }
  Chain& chain = chains_[index];
  chain.listed += route.has_value();
  if (route != chain.route) refuse(chain, Refusal::split);
  require_thread(chain, event);
  require_fit(chain, event);
  if (measuring_ && !chain.refusal && is_temp(kind_of(chain))) reallocates_.push_back({number, index});
  chain_of_block_.insert(event.block + 1, index);
  return index;
}

void RouteReview::end(const Event& event, std::uint32_t number) {
  std::uint32_t index = 0;
  if (!chain_of_block_.take(event.block + 1, index)) return;
  Chain& chain = chains_[index];
  chain.end = number;
  require_thread(chain, event);
  if (!measuring_) over_.push_back(index);  // it is no block of the stretch
}

void RouteReview::refuse(Chain& chain, Refusal why) {
  if (!chain.refusal) chain.refusal = why;
}

void RouteReview::require_thread(Chain& chain, const Event& event) {
  if (event.thread == chain.thread) return;
  chain.remote = true;
  if (is_local(kind_of(chain))) refuse(chain, Refusal::other_thread);
}

void RouteReview::require_fit(Chain& chain, const Event& event) const {
  const journal::Route& route = routes_.routes[chain.route];
  bool fits = true;
  switch (route.kind) {
    case RouteKind::temp:
    case RouteKind::temp_scope:
    case RouteKind::temp_job:
    case RouteKind::rewindable:
      fits = event.size <= most_lifetime_bytes && alignment_of(event) <= BY_LIFETIME_MAX_ALIGNMENT;
      break;
    case RouteKind::block_pool: {
      const std::uint64_t alignment = std::uint64_t{1} << found_.routes[chain.route].alignment_log2;
      fits = event.size <= route.bytes && alignment_of(event) <= alignment && route.bytes <= most_pool_bytes &&
             alignment <= most_pool_alignment;
      break;
    }
    case RouteKind::reserve:
    case RouteKind::keep:
      break;
  }
  if (!fits) refuse(chain, Refusal::does_not_fit);
}

Reroutes RouteReview::finish() {
  if (!ended_ && events_ != routes_.events) {
    throw journal::Error(path_ + " belongs to a journal of " + number_text(routes_.events) +
                         " events, and this one has " + number_text(events_));
  }
  choose_frame_thread();
  refuse_by_frames();
  refuse_by_scopes();
  std::vector<std::uint32_t> admitted;
  for (std::uint32_t index = 0; index < chains_.size(); ++index) {
    const Chain& chain = chains_[index];
    PlanRoute& route = found_.routes[chain.route];
    if (chain.refusal) {
      route.refused[static_cast<std::size_t>(*chain.refusal)] += chain.listed;
      continue;
    }
    route.blocks += chain.listed;
    admitted.push_back(index);
    found_.blocks.push_back({chain.begin, chain.route, 0});
    if (ends_with_frames(kind_of(chain))) found_.ends_frames = true;
  }
  for (const Need& growth : growths_) {
    if (!chains_[growth.chain].refusal) found_.growths.push_back(growth.event);
  }
  std::sort(found_.growths.begin(), found_.growths.end());
  find_generations(admitted);
  return std::move(found_);
}

// Reports judge the same thread by default.
void RouteReview::choose_frame_thread() {
  const auto most =
      std::max_element(marks_.begin(), marks_.end(), [](const auto& a, const auto& b) { return a.size() < b.size(); });
  if (most != marks_.end() && !most->empty()) found_.frame_thread = static_cast<std::uint32_t>(most - marks_.begin());
}

void RouteReview::refuse_by_frames() {
  const std::vector<std::uint32_t> unmarked;
  const std::vector<std::uint32_t>& marks = found_.frame_thread == none ? unmarked : marks_[found_.frame_thread];
  for (Chain& chain : chains_) {
    const RouteKind kind = kind_of(chain);
    if (chain.refusal || !ends_with_frames(kind)) continue;
    const auto first = std::upper_bound(marks.begin(), marks.end(), chain.begin);
    const auto ended = static_cast<std::uint64_t>(std::lower_bound(first, marks.end(), chain.end) - first);
    if (ended > (kind == RouteKind::temp_job ? job_frames : 0)) {
      refuse(chain, Refusal::outlives_frame);
    } else if (chain.end == forever) {
      refuse(chain, Refusal::unfinished);
    }
  }
}

// A scope's end frees what its thread allocated since it opened, also on other routes.
void RouteReview::refuse_by_scopes() {
  const bool any = std::any_of(chains_.begin(), chains_.end(), [this](const Chain& chain) {
    return !chain.refusal && kind_of(chain) == RouteKind::temp_scope;
  });
  // A chain refused at a reallocate has shaped scopes before, so they are found again without it. Few rounds are
  // needed; where they do not suffice, chains with reallocates are refused altogether, and then one round does.
  constexpr int most_rounds = 8;
  for (int round = 0; any && !scopes_nest(); ++round) {
    if (round < most_rounds) continue;
    for (const Need& need : reallocates_) refuse(chains_[need.chain], Refusal::outlives_scope);
  }
}

bool RouteReview::scopes_nest() {
  struct Scope {
    std::uint16_t route;
    std::uint32_t closes;  ///< event
  };
  std::vector<std::vector<Scope>> open;  // by thread, the innermost last
  bool nest = true;
  const auto visit = [&](Chain& chain, std::uint32_t event) {
    if (chain.refusal || !is_temp(kind_of(chain))) return;
    if (chain.thread >= open.size()) open.resize(chain.thread + std::size_t{1});
    std::vector<Scope>& scopes = open[chain.thread];
    while (!scopes.empty() && scopes.back().closes < event) scopes.pop_back();
    const bool begins = event == chain.begin;
    const bool scoped = kind_of(chain) == RouteKind::temp_scope;
    // A scope lasts until the last of its blocks ends. The innermost one may yet last longer, up to the one around it.
    const bool extends = scoped && !scopes.empty() && scopes.back().route == chain.route;
    const std::size_t around = scopes.size() - (extends ? 1 : 0);
    if (around != 0 && chain.end > scopes[around - 1].closes) {
      refuse(chain, Refusal::outlives_scope);
      if (!begins) nest = false;
    } else if (extends) {
      scopes.back().closes = std::max(scopes.back().closes, chain.end);
    } else if (begins && scoped) {
      const bool is_open =
          std::any_of(scopes.begin(), scopes.end(), [&](const Scope& scope) { return scope.route == chain.route; });
      if (!is_open) scopes.push_back({chain.route, chain.end});
    }
  };
  std::size_t next = 0;
  for (Chain& chain : chains_) {
    for (; next < reallocates_.size() && reallocates_[next].event < chain.begin; ++next) {
      visit(chains_[reallocates_[next].chain], reallocates_[next].event);
    }
    visit(chain, chain.begin);
  }
  for (; next < reallocates_.size(); ++next) visit(chains_[reallocates_[next].chain], reallocates_[next].event);
  return nest;
}

// An arena is rewound whenever the last of its live blocks ends.
void RouteReview::find_generations(const std::vector<std::uint32_t>& admitted) {
  std::vector<std::vector<std::size_t>> blocks(found_.routes.size());  // by route, those of rewindable ones
  std::vector<std::optional<std::uint16_t>> threads(found_.routes.size());
  for (std::size_t index = 0; index < admitted.size(); ++index) {
    const Chain& chain = chains_[admitted[index]];
    if (!threads[chain.route]) threads[chain.route] = chain.thread;
    if (chain.remote || threads[chain.route] != chain.thread) found_.shared[chain.route] = true;
    if (kind_of(chain) == RouteKind::rewindable) blocks[chain.route].push_back(index);
  }
  for (std::size_t route = 0; route < blocks.size(); ++route) {
    std::vector<std::uint32_t> ends;
    for (const std::size_t index : blocks[route]) {
      const std::uint32_t end = chains_[admitted[index]].end;
      if (end != forever) ends.push_back(end);
    }
    std::sort(ends.begin(), ends.end());
    PlanRoute& plan = found_.routes[route];
    plan.first_generation = static_cast<std::uint32_t>(found_.generations.size());
    std::size_t freed = 0;
    const auto free_until = [&](std::uint32_t event, std::size_t begun) {
      while (freed < ends.size() && ends[freed] < event) {
        if (++freed != begun) continue;
        found_.generations.push_back(freed);
        ++plan.generations;
      }
    };
    for (std::size_t begun = 0; begun < blocks[route].size(); ++begun) {
      ReroutedBlock& block = found_.blocks[blocks[route][begun]];
      free_until(block.event, begun);
      block.generation = plan.generations;
    }
    free_until(forever, blocks[route].size());
  }
}

}  // namespace blockyard::replay
