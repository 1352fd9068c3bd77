#include "advise/tally.hpp"

#include <algorithm>
#include <bit>
#include <limits>

#include "advise/costs.hpp"

namespace blockyard::advise {
namespace {

/// Fewer blocks that die together are no group.
constexpr std::uint64_t least_group = 16;
/// So large a part of the live blocks dies in the burst that ends a group.
constexpr double group_share = 0.9;
/// Where no frame is marked, a life is long from here on: more than temp_job_frames frames at 60 Hz.
constexpr std::uint64_t long_ns = 83'000'000;
/// A group dies within a sixtieth of a second, or within this part of its life.
constexpr std::uint64_t quick_ns = 16'666'667;
constexpr std::uint64_t quick_part = 10;
/// Groups are compared by their first generations.
constexpr std::size_t most_generations = 8;

/// Half seconds by how they allocate: the report's rule for the phases that it finds by rate (blockyard/analysis/
/// phases.py has it, with its reasons).
class Loading {
 public:
  void add(std::uint64_t time_ns, std::uint64_t mallocs, std::uint64_t frees) {
    const std::size_t window = time_ns / window_ns;
    if (window >= windows_.size()) windows_.resize(window + 1);
    windows_[window].mallocs += mallocs;
    windows_[window].frees += frees;
  }

  void conclude() {
    std::vector<std::uint64_t> busy;
    for (const Window& one : windows_) {
      if (one.mallocs != 0) busy.push_back(one.mallocs);
    }
    if (busy.empty()) return;
    const std::size_t middle = busy.size() / 2;
    std::nth_element(busy.begin(), busy.begin() + static_cast<std::ptrdiff_t>(middle), busy.end());
    const auto usual = static_cast<double>(busy[middle]);
    for (Window& one : windows_) {
      const auto mallocs = static_cast<double>(one.mallocs);
      const auto frees = static_cast<double>(one.frees);
      const bool goes = frees > 2 * mallocs && frees > usual / 2;
      one.loads = !goes && (mallocs > 3 * usual || (mallocs >= usual / 2 && mallocs - frees > mallocs / 4));
    }
    smooth(false);
    smooth(true);
    plays_ = std::any_of(windows_.begin(), windows_.end(), [](const Window& one) { return !one.loads; });
  }

  /// Whether a frame that begins then is one of loading. False for all where nothing else is.
  bool at(std::uint64_t time_ns) const {
    const std::size_t window = time_ns / window_ns;
    return plays_ && window < windows_.size() && windows_[window].loads;
  }

 private:
  /// Turns stretches shorter than a second between two others around, first rests, then loads. A load may be short
  /// where the recording begins.
  void smooth(bool loads) {
    for (auto begin = windows_.begin(); begin != windows_.end();) {
      const bool is = begin->loads;
      const auto end = std::find_if(begin, windows_.end(), [&](const Window& one) { return one.loads != is; });
      const bool between = begin != windows_.begin() && (loads || end != windows_.end());
      if (is == loads && end - begin < shortest && between) {
        std::for_each(begin, end, [&](Window& one) { one.loads = !loads; });
      }
      begin = end;
    }
  }

  static constexpr std::uint64_t window_ns = 500'000'000;
  static constexpr std::ptrdiff_t shortest = 2;
  struct Window {
    std::uint64_t mallocs = 0;
    std::uint64_t frees = 0;
    bool loads = false;
  };
  std::vector<Window> windows_;
  bool plays_ = false;
};

class Profiler final : public Listener {
 public:
  Profiler(const Recording& recording, bool ends_early, Profile& result)
      : recording_(recording),
        ends_early_(ends_early || recording.header.cut_at_end),
        result_(result),
        leaf_of_node_(recording.stacks->nodes().size()) {}
  void follow(const Follower& follower) { follower_ = &follower; }

  void begins(Life& life) override {
    std::uint32_t& leaf = leaf_of_node_[life.node];
    if (leaf == 0) {
      result_.leaves.push_back({.node = life.node, .size = life.size, .tally = {}, .populations = {}});
      running_.emplace_back();
      leaf = static_cast<std::uint32_t>(result_.leaves.size());
    }
    life.owner = leaf - 1;
    life.offset = life.size;
    split(result_.leaves[life.owner], running_[life.owner], life.size);
    const double cost = cost::pair(life.size);
    for_each(life, [&](Tally& tally, Running& running) {
      ++tally.lives;
      tally.cost += cost;
      tally.threads |= std::uint64_t{1} << std::min(life.thread, 63U);
      if (running.deaths != 0) close_group(tally, running);
      if (running.births++ == 0) running.born_ns = life.born_ns;
      ++running.live_blocks;
      add_block(tally, running, life.size, 0);
      count(tally, running, life.thread, life.frame, 1, life.size, cost);
    });
    spend(life.thread, life.frame, cost);
    loading_.add(life.born_ns, 1, 0);
    if (frame_begins_.size() < frame_costs_.size()) frame_begins_.resize(frame_costs_.size(), life.born_ns);
  }

  void grows(Life& life, std::uint64_t old_size, std::uint32_t frame) override {
    const double cost = cost::move(old_size);
    for_each(life, [&](Tally& tally, Running& running) {
      tally.realloc_cost += cost;
      ++tally.reallocations;
      if (life.reallocations == 1) ++tally.grown;
      add_block(tally, running, life.size, old_size);
      count(tally, running, life.thread, frame, 0, life.size, cost);
    });
    spend(life.thread, frame, cost);
  }

  void ends(Life& life, const End& end) override {
    Leaf& leaf = result_.leaves[life.owner];
    const bool scoped = end.freed && is_scoped(life, end);
    if (scoped) {
      const std::uint32_t depth = end.place.caller == journal::no_node ? 0 : recording_.depth[end.place.caller] + 1;
      if (depth < leaf.scope_depth) {
        leaf.scope_depth = depth;
        leaf.scope_function = end.place.function;
      }
    }
    if (end.freed) loading_.add(end.ns, 0, 1);
    for_each(life, [&](Tally& tally, Running& running) { ends(life, end, scoped, tally, running); });
  }

  void conclude() {
    const std::uint32_t frame = follower_->frame();
    for (std::size_t i = 0; i < running_.size(); ++i) {
      Leaf& leaf = result_.leaves[i];
      conclude(leaf.tally, running_[i].all, frame);
      for (std::size_t part = 0; part < leaf.populations.size(); ++part) {
        conclude(leaf.populations[part].tally, running_[i].parts[part], frame);
      }
      result_.cost += leaf.tally.cost + leaf.tally.realloc_cost;
    }
    loading_.conclude();
    for (std::uint32_t i = 1; i < std::min<std::size_t>(frame, frame_costs_.size()); ++i) {
      if (!follower_->began_in_window(i) || frame_costs_[i] <= result_.worst_frame_cost) continue;
      if (recording_.names_play ? !recording_.plays_at(frame_begins_[i]) : loading_.at(frame_begins_[i])) continue;
      result_.worst_frame_cost = frame_costs_[i];
      result_.worst_frame = i;
      result_.worst_frame_ns = frame_begins_[i];
    }
  }

 private:
  struct Running {
    std::uint64_t live_blocks = 0;
    std::uint64_t live_bytes = 0;
    std::uint64_t burst_bytes = 0;
    std::uint64_t frame_lives = 0;
    std::uint64_t frame_bytes = 0;
    double frame_cost = 0;
    std::uint64_t last_lives = 0;  ///< of the last frame with a life
    std::uint64_t last_bytes = 0;
    std::uint64_t births = 0;  ///< of the group
    std::uint64_t deaths = 0;
    std::uint64_t live_before = 0;
    std::uint64_t survivors = 0;  ///< of earlier groups, while they live
    std::uint64_t born_ns = 0;
    std::uint64_t first_death_ns = 0;
    std::uint64_t last_death_ns = 0;
    std::uint32_t frame = std::numeric_limits<std::uint32_t>::max();
    std::uint32_t death_frame = 0;  ///< of the last death
  };
  struct RunningLeaf {
    Running all;
    std::vector<Running> parts;  ///< as Leaf::populations
  };

  /// Makes room for another size. Up to the second one the leaf is its first population.
  static void split(Leaf& leaf, RunningLeaf& running, std::uint64_t size) {
    auto& parts = leaf.populations;
    if (parts.empty()) {
      if (size == leaf.size) return;
      parts.push_back({leaf.size, leaf.tally});
      if (leaf.tally.largest) parts.back().tally.largest = std::make_shared<Largest>(*leaf.tally.largest);
      running.parts.push_back(running.all);
    }
    const bool known = std::any_of(parts.begin(), parts.end(), [&](const auto& one) { return one.size == size; });
    if (known) return;
    if (parts.size() == most_populations) {
      leaf.has_more_sizes = true;
      return;
    }
    parts.push_back({size, {}});
    running.parts.emplace_back();
  }

  /// Calls `add` for the leaf of a life and for its population.
  template <typename Add>
  void for_each(const Life& life, const Add& add) {
    Leaf& leaf = result_.leaves[life.owner];
    RunningLeaf& running = running_[life.owner];
    add(leaf.tally, running.all);
    for (std::size_t i = 0; i < leaf.populations.size(); ++i) {
      if (leaf.populations[i].size != life.offset) continue;
      add(leaf.populations[i].tally, running.parts[i]);
      return;
    }
  }

  void ends(const Life& life, const End& end, bool scoped, Tally& tally, Running& running) const {
    tally.copies += life.copies;
    if (life.reallocations != 0) {
      if (!tally.largest) tally.largest = std::make_shared<Largest>();
      tally.largest->add(life.largest);
    }
    const std::uint32_t crossed = end.frame - life.frame;
    const bool is_long = recording_.has_frames() ? crossed > temp_job_frames : end.ns - life.born_ns > long_ns;
    if (is_long) ++tally.long_lives;
    if (crossed <= temp_job_frames) ++tally.within_job;
    if (!end.freed) {
      ++tally.alive;
      const bool in_time = recording_.has_frames() ? crossed == 0 : ends_early_;
      if (in_time) {
        ++tally.undecided;
        --tally.within_job;
      }
      return;
    }
    ++tally.freed;
    const bool same_thread = end.thread == life.thread;
    const bool on_frame_thread = life.thread == recording_.frame_thread;
    if (recording_.has_frames() && crossed == 0) {
      if (same_thread && on_frame_thread) ++tally.in_frame;
      if (!same_thread) ++tally.remote_in_frame;
    }
    if (same_thread && crossed <= 1) ++tally.kept;
    if (scoped) ++tally.scoped;
    // What dies in a later frame than most of its group outlives it.
    if (running.deaths != 0 && end.frame != running.death_frame && is_group(running)) close_group(tally, running);
    running.death_frame = end.frame;
    if (running.deaths++ == 0) {
      running.live_before = running.live_blocks - running.survivors;
      running.first_death_ns = end.ns;
    }
    running.last_death_ns = end.ns;
    running.live_bytes -= life.size;
    if (--running.live_blocks == 0) {
      running.burst_bytes = 0;
      ++tally.bursts;
    }
  }

  void conclude(Tally& tally, Running& running, std::uint32_t frame) const {
    if (running.deaths != 0) close_group(tally, running);
    if (running.frame != frame) end_frame(tally, running);
    if (!ends_early_ && running.live_blocks > running.survivors) {
      tally.survivors += running.live_blocks - running.survivors;
    }
  }

  static void add_block(Tally& tally, Running& running, std::uint64_t size, std::uint64_t old_size) {
    ++tally.blocks;
    tally.bytes += size;
    tally.sizes.add(size);
    running.live_bytes += size - old_size;
    running.burst_bytes += size;
    tally.burst_bytes = std::max(tally.burst_bytes, running.burst_bytes);
    tally.peak_blocks = std::max(tally.peak_blocks, running.live_blocks);
    tally.peak_bytes = std::max(tally.peak_bytes, running.live_bytes);
  }

  void spend(std::uint32_t thread, std::uint32_t frame, double cost) {
    if (thread != recording_.frame_thread) return;
    if (frame >= frame_costs_.size()) frame_costs_.resize(frame + std::size_t{1});
    frame_costs_[frame] += cost;
  }

  void count(Tally& tally, Running& running, std::uint32_t thread, std::uint32_t frame, std::uint64_t lives,
             std::uint64_t bytes, double cost) const {
    if (thread != recording_.frame_thread) return;
    if (running.frame != frame) end_frame(tally, running);
    running.frame = frame;
    running.frame_lives += lives;
    running.frame_bytes += bytes;
    running.frame_cost += cost;
  }

  /// What comes before the window's first mark is no whole frame.
  void end_frame(Tally& tally, Running& running) const {
    if (!follower_->began_in_window(running.frame)) running = without_frame(running);
    tally.frame_bytes = std::max(tally.frame_bytes, running.frame_bytes);
    tally.worst_frame_cost = std::max(tally.worst_frame_cost, running.frame_cost);
    if (running.frame_lives != 0) {
      ++tally.frames;
      ++tally.frames_met;
      if (running.frame_lives == running.last_lives && running.frame_bytes == running.last_bytes) ++tally.frames_alike;
      running.last_lives = running.frame_lives;
      running.last_bytes = running.frame_bytes;
    }
    running = without_frame(running);
  }

  static Running without_frame(Running running) {
    running.frame_lives = running.frame_bytes = 0;
    running.frame_cost = 0;
    return running;
  }

  /// Whether the deaths since the last birth are those of a group.
  static bool is_group(const Running& running) {
    const std::uint64_t took_ns = running.last_death_ns - running.first_death_ns;
    const std::uint64_t life_ns = running.first_death_ns - running.born_ns;
    const auto enough = static_cast<std::uint64_t>(group_share * static_cast<double>(running.live_before));
    return took_ns <= std::max(quick_ns, life_ns / quick_part) && running.deaths >= least_group &&
           running.deaths >= enough;
  }

  /// Deaths without a birth between them are over.
  static void close_group(Tally& tally, Running& running) {
    if (is_group(running)) {
      ++tally.groups;
      tally.group_lives += running.deaths;
      if (running.live_blocks > running.survivors) tally.survivors += running.live_blocks - running.survivors;
      running.survivors = running.live_blocks;
      if (tally.generations.size() < most_generations) {
        tally.generations.push_back({running.born_ns, running.last_death_ns});
      }
      running.births = 0;
    } else {
      tally.loose_lives += running.deaths;
      running.survivors = std::min(running.survivors, running.live_blocks);
    }
    running.deaths = 0;
  }

  bool is_scoped(const Life& life, const End& end) const {
    return end.same_call && end.place.caller != journal::no_node && !recording_.starts_program[end.place.caller] &&
           !recording_.enclosing.contains(end.place.function) &&
           (life.thread != recording_.frame_thread || end.frame == life.frame);
  }

  const Recording& recording_;
  bool ends_early_;
  Profile& result_;
  const Follower* follower_ = nullptr;
  std::vector<RunningLeaf> running_;  ///< by leaf
  Loading loading_;
  std::vector<std::uint32_t> leaf_of_node_;  ///< leaf + 1
  std::vector<double> frame_costs_;
  std::vector<std::uint64_t> frame_begins_;  ///< time of the first allocation
};

}  // namespace

void Sizes::add(std::uint64_t size, std::uint64_t count) {
  for (One& one : known_) {
    if (one.count != 0 && stride_of(one.largest) != stride_of(size)) continue;
    one.largest = std::max(one.largest, size);
    one.count += count;
    return;
  }
  others_ += count;
}

void Sizes::add(const Sizes& other) {
  for (const One& one : other.known_) {
    if (one.count != 0) add(one.largest, one.count);
  }
  others_ += other.others_;
}

std::uint64_t Sizes::top_count() const {
  std::uint64_t most = 0;
  for (const One& one : known_) most = std::max(most, one.count);
  return most;
}

std::uint64_t Sizes::top() const {
  return std::max_element(known_.begin(), known_.end(), [](const One& a, const One& b) { return a.count < b.count; })
      ->largest;
}

void Largest::add(std::uint64_t size) {
  constexpr int fraction_bits = 3;
  const int width = static_cast<int>(std::bit_width(size));
  const int shift = std::max(0, width - 1 - fraction_bits);
  Step& step =
      steps_[static_cast<std::uint32_t>(width << (fraction_bits + 1)) + static_cast<std::uint32_t>(size >> shift)];
  ++step.count;
  step.largest = std::max(step.largest, size);
}

void Largest::add(const Largest& other) {
  for (const auto& [key, step] : other.steps_) {
    steps_[key].count += step.count;
    steps_[key].largest = std::max(steps_[key].largest, step.largest);
  }
}

std::uint64_t Largest::quantile(double share) const {
  std::uint64_t all = 0;
  for (const auto& [key, step] : steps_) all += step.count;
  std::uint64_t seen = 0;
  for (const auto& [key, step] : steps_) {
    seen += step.count;
    if (static_cast<double>(seen) >= share * static_cast<double>(all)) return step.largest;
  }
  return 0;
}

void Tally::add(const Tally& other) {
  lives += other.lives;
  blocks += other.blocks;
  bytes += other.bytes;
  cost += other.cost;
  realloc_cost += other.realloc_cost;
  worst_frame_cost += other.worst_frame_cost;
  freed += other.freed;
  alive += other.alive;
  undecided += other.undecided;
  in_frame += other.in_frame;
  remote_in_frame += other.remote_in_frame;
  within_job += other.within_job;
  scoped += other.scoped;
  kept += other.kept;
  long_lives += other.long_lives;
  grown += other.grown;
  reallocations += other.reallocations;
  copies += other.copies;
  threads |= other.threads;
  peak_blocks += other.peak_blocks;
  peak_bytes += other.peak_bytes;
  frame_bytes += other.frame_bytes;
  burst_bytes += other.burst_bytes;
  bursts += other.bursts;
  frames_met = std::max(frames_met, other.frames_met);
  // Of several sites the least regular one tells.
  if (frames == 0 || (other.frames != 0 && other.frames_alike < frames_alike)) {
    frames = other.frames;
    frames_alike = other.frames_alike;
  }
  group_lives += other.group_lives;
  loose_lives += other.loose_lives;
  survivors += other.survivors;
  groups = std::max(groups, other.groups);
  sizes.add(other.sizes);
  if (other.largest && !largest) {
    largest = std::make_shared<Largest>(*other.largest);
  } else if (other.largest) {
    largest->add(*other.largest);
  }
  if (other.generations.size() > generations.size()) generations = other.generations;
}

Profile profile(const Recording& recording, Window window, const journal::Progress& progress) {
  Profile result;
  Profiler profiler(recording, window.to_ns <= recording.duration_ns, result);
  Follower follower(recording, window, profiler);
  profiler.follow(follower);
  follower.run(progress);
  profiler.conclude();
  result.frames = follower.frames();
  result.duration_ns = std::min(window.to_ns, recording.duration_ns) - window.from_ns;
  return result;
}

}  // namespace blockyard::advise
