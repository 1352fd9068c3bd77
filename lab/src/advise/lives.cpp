#include "advise/lives.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "journal/reader.hpp"

namespace blockyard::advise {

using journal::Error;
using journal::Event;
using journal::Kind;

void CallPath::go_to(std::uint32_t node, const Recording& recording) {
  ++turn_;
  if (node == journal::no_site) return;
  const auto nodes = recording.stacks->nodes();
  new_.clear();
  std::size_t length = recording.depth[node] + std::size_t{1};
  for (std::uint32_t at = node; length != 0; at = nodes[at].parent, --length) {
    if (length <= steps_.size() && steps_[length - 1].node == at) break;
    new_.push_back(at);
  }
  steps_.resize(length);
  for (auto step = new_.rbegin(); step != new_.rend(); ++step) steps_.push_back({*step, turn_});
}

bool CallPath::goes_on(std::uint32_t node, std::uint64_t turn, const Recording& recording) const {
  if (node == journal::no_node) return true;
  const std::size_t depth = recording.depth[node];
  return depth < steps_.size() && steps_[depth].node == node && steps_[depth].since <= turn;
}

std::vector<std::uint32_t> CallPath::calls_since(std::uint64_t turn) const {
  std::vector<std::uint32_t> calls;
  for (const Step& step : steps_) {
    calls.push_back(step.node);
    if (step.since > turn) break;
  }
  return calls;
}

Follower::Follower(const Recording& recording, Window window, Listener& listener)
    : recording_(recording), window_(window), listener_(listener), shared_(*recording.labels) {}

void Follower::run(const journal::Progress& progress) {
  const auto visit = [this](const Event& event) {
    if (event.time_ns >= window_.to_ns) return false;
    add(event);
    return true;
  };
  journal::for_each_event(*journal::open(recording_.path), progress, visit,
                          [this](const Event& later) { live_.prefetch(ended_block(later) + 1); });
  end_the_living();
}

std::vector<std::uint32_t> Follower::events_of(const Life& life) const {
  std::vector<std::uint32_t> events{life.event};
  if (life.more_events != 0) {
    const auto& more = more_events_[life.more_events - 1];
    events.insert(events.end(), more.begin(), more.end());
  }
  return events;
}

void Follower::add(const Event& event) {
  now_ns_ = event.time_ns;
  if (event.thread >= paths_.size()) {
    paths_.resize(event.thread + std::size_t{1});
    waiting_.resize(paths_.size());
  }
  paths_[event.thread].go_to(event.site, recording_);
  switch (event.kind) {
    case Kind::frame_mark:
      if (event.thread != recording_.frame_thread) break;
      ++frame_;
      if (first_frame_ == 0 && event.time_ns >= window_.from_ns) first_frame_ = frame_;
      break;
    case Kind::phase_mark:
      break;
    case Kind::free:
      if (waiting_[event.thread].block != journal::no_block) {
        move_into(std::exchange(waiting_[event.thread], {}), event);
      } else {
        release(event);
      }
      break;
    case Kind::reallocate:
      reallocate(event);
      break;
    default:
      if (next_growth_ < recording_.growths.size() && recording_.growths[next_growth_].allocation == number_) {
        waiting_[event.thread] = {event.block, event.size, number_};
        ++next_growth_;
      } else {
        give(event);
      }
  }
  ++number_;
}

std::uint32_t Follower::new_life() {
  if (free_lives_.empty()) {
    lives_.emplace_back();
    return static_cast<std::uint32_t>(lives_.size() - 1);
  }
  const std::uint32_t life = free_lives_.back();
  free_lives_.pop_back();
  lives_[life] = {};
  return life;
}

std::uint32_t Follower::take(std::uint64_t block) {
  std::uint32_t life = 0;
  if (!live_.take(block + 1, life)) {
    throw Error(recording_.path + ", event " + std::to_string(number_) + ": " + journal::freed_but_not_live(block));
  }
  return life;
}

void Follower::give(const Event& event) {
  const std::uint32_t index = new_life();
  Life& life = lives_[index];
  life.born_ns = event.time_ns;
  life.born_turn = paths_[event.thread].turn();
  life.size = life.largest = life.bytes = event.size;
  life.node = event.site;
  life.frame = frame_;
  life.event = static_cast<std::uint32_t>(number_);
  life.thread = event.thread;
  life.alignment = event.alignment;
  life.counts = number_ >= recording_.header.preamble_events && event.time_ns >= window_.from_ns &&
                event.site != journal::no_site;
  live_.insert(event.block + 1, index);
  if (life.counts) listener_.begins(life);
}

void Follower::reallocate(const Event& event) {
  const std::uint32_t index = take(event.old_block);
  grow(index, event.block, event.size);
  if (lives_[index].counts) note(lives_[index], number_);
}

void Follower::move_into(const Waiting& given, const Event& event) {
  const std::uint32_t index = take(event.block);
  Life& life = lives_[index];
  ++life.copies;
  grow(index, given.block, given.size);
  if (!life.counts) return;
  note(life, given.event);
  note(life, number_);
}

void Follower::grow(std::uint32_t index, std::uint64_t block, std::uint64_t size) {
  live_.insert(block + 1, index);
  Life& life = lives_[index];
  const std::uint64_t old_size = life.size;
  life.size = size;
  if (!life.counts) return;
  life.largest = std::max(life.largest, size);
  life.bytes += size;
  ++life.reallocations;
  listener_.grows(life, old_size, frame_);
}

void Follower::note(Life& life, std::uint64_t event) {
  if (life.more_events == 0) {
    if (free_lists_.empty()) {
      more_events_.emplace_back();
      free_lists_.push_back(static_cast<std::uint32_t>(more_events_.size()));
    }
    life.more_events = free_lists_.back();
    free_lists_.pop_back();
  }
  more_events_[life.more_events - 1].push_back(static_cast<std::uint32_t>(event));
}

/// A scope needs a function that the program can change: of a library's function its nearest caller of that kind.
sites::SharedFunction::Place Follower::own_place(std::uint32_t allocation, std::uint32_t free) {
  const sites::SharedFunction::Place place = shared_.where(allocation, free);
  if (!recording_.foreign[place.function]) return place;
  const std::uint32_t own = place.caller == journal::no_node ? journal::no_node : recording_.own[place.caller];
  if (own == journal::no_node) return {};
  return {recording_.label_of(own).function, recording_.stacks->nodes()[own].parent};
}

void Follower::release(const Event& event) {
  const std::uint32_t index = take(event.block);
  Life& life = lives_[index];
  if (life.counts) {
    End end{
        .ns = event.time_ns, .thread = event.thread, .frame = frame_, .freed = true, .node = event.site, .place = {}};
    if (event.site != journal::no_site) {
      end.place = own_place(life.node, event.site);
      end.same_call = end.place.function != sites::SharedFunction::none && event.thread == life.thread &&
                      paths_[event.thread].goes_on(end.place.caller, life.born_turn, recording_);
    }
    listener_.ends(life, end);
    if (life.more_events != 0) {
      more_events_[life.more_events - 1].clear();
      free_lists_.push_back(life.more_events);
    }
  }
  free_lives_.push_back(index);
}

void Follower::end_the_living() {
  std::vector<std::uint32_t> alive;
  live_.for_each([&](std::uint64_t, std::uint32_t life) {
    if (lives_[life].counts) alive.push_back(life);
  });
  std::sort(alive.begin(), alive.end(),
            [this](std::uint32_t a, std::uint32_t b) { return lives_[a].event < lives_[b].event; });
  for (const std::uint32_t life : alive) {
    listener_.ends(lives_[life],
                   {.ns = now_ns_, .thread = lives_[life].thread, .frame = frame_, .freed = false, .place = {}});
  }
}

}  // namespace blockyard::advise
