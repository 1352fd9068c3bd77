#include "advise/judge.hpp"

#include <algorithm>
#include <map>
#include <utility>

#include "advise/costs.hpp"

namespace blockyard::advise {
namespace {

constexpr std::uint32_t nobody = std::numeric_limits<std::uint32_t>::max();

/// Names of whole stacks, as numbers that are equal for equal names.
std::vector<std::uint64_t> name_hashes(const Recording& recording) {
  constexpr std::uint64_t mix = 0x9E37'79B9'7F4A'7C15U;
  const auto nodes = recording.stacks->nodes();
  const sites::Labels& labels = *recording.labels;
  std::vector<std::uint64_t> frames(recording.stacks->frames().size());
  for (std::uint32_t i = 0; i < frames.size(); ++i) {
    for (const sites::Label& label : labels.of_frame(i)) {
      frames[i] = (frames[i] ^ std::hash<std::string>{}(labels.text(label.function)) ^ label.line) * mix;
    }
  }
  std::vector<std::uint64_t> hashes(nodes.size());
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    const std::uint64_t above = nodes[i].parent == journal::no_node ? 1 : hashes[nodes[i].parent];
    hashes[i] = ((above >> 29 ^ above) * mix) ^ frames[nodes[i].frame];
  }
  return hashes;
}

/// The pieces of a stack: one for its blocks of each of these sizes, and one for all others.
struct Match {
  std::uint32_t others = nobody;
  std::vector<std::pair<std::uint64_t, std::uint32_t>> of_sizes;

  std::uint32_t of(std::uint64_t size) const {
    for (const auto& [one, piece] : of_sizes) {
      if (one == size) return piece;
    }
    return others;
  }
  bool is_empty() const { return others == nobody && of_sizes.empty(); }
};

/// Which piece a stack belongs to: the one whose context goes furthest out.
class Matcher {
 public:
  explicit Matcher(const std::vector<Piece>& pieces) : nodes_(1) {
    for (std::uint32_t piece = 0; piece < pieces.size(); ++piece) {
      for (const Context& context : pieces[piece].contexts) {
        std::uint32_t at = 0;
        for (const std::uint32_t word : context) {
          const auto [place, is_new] = next_.try_emplace({at, word}, static_cast<std::uint32_t>(nodes_.size()));
          if (is_new) nodes_.emplace_back();
          at = place->second;
        }
        if (pieces[piece].size == 0) {
          nodes_[at].others = piece;
        } else {
          nodes_[at].of_sizes.emplace_back(pieces[piece].size, piece);
        }
      }
    }
    nodes_[0] = {};
  }

  Match of(const Context& context) const {
    std::uint32_t at = 0;
    Match match;
    for (const std::uint32_t word : context) {
      const auto next = next_.find({at, word});
      if (next == next_.end()) break;
      at = next->second;
      if (!nodes_[at].is_empty()) match = nodes_[at];
    }
    return match;
  }

 private:
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> next_;
  std::vector<Match> nodes_;
};

class Judge final : public Listener {
 public:
  Judge(const std::vector<Piece>& pieces, const Recording& recording, Words& words, const JudgeOptions& options,
        Verdict& verdict)
      : pieces_(pieces),
        recording_(recording),
        options_(options),
        verdict_(verdict),
        matcher_(pieces),
        contexts_(recording, words),
        known_words_(words.size()),
        ends_early_(options.window.to_ns <= recording.duration_ns || recording.header.cut_at_end),
        of_node_(recording.stacks->nodes().size()),
        running_(pieces.size()) {
    verdict.pieces.resize(pieces.size());
    if (options.baseline != nullptr) hashes_ = name_hashes(recording);
  }
  void follow(const Follower& follower) { follower_ = &follower; }

  void begins(Life& life) override {
    const Node& node = of(life.node);
    life.owner = node.pieces.of(life.size);
    ++verdict_.lives;
    if (node.known) ++verdict_.known_lives;
    spend(life, cost::pair(life.size), life.frame);
    if (life.owner == node.pieces.others) {
      for (const auto& [unused, piece] : node.pieces.of_sizes) ++verdict_.pieces[piece].other_sizes;
    }
    if (life.owner == nobody) return;
    Evidence& evidence = verdict_.pieces[life.owner];
    Running& running = running_[life.owner];
    ++evidence.lives;
    ++evidence.nodes[life.node];
    evidence.threads |= std::uint64_t{1} << std::min(life.thread, 63U);
    evidence.alignment = std::max(evidence.alignment, life.alignment);
    if (running.frame != life.frame && follower_->began_in_window(life.frame)) ++evidence.frames;
    running.frame = life.frame;
    if (running.deaths != 0) close_group(life.owner);
    if (running.live_blocks++ == 0 && is(life, What::temp_scope)) ++evidence.periods;
    evidence.peak_blocks = std::max(evidence.peak_blocks, running.live_blocks);
    running.live_bytes += life.size;
    add_block(life, evidence, life.size, life.frame);
    generation_of(life) = running.generation;
  }

  void grows(Life& life, std::uint64_t old_size, std::uint32_t frame) override {
    spend(life, cost::move(old_size), frame);
    if (life.owner == nobody) return;
    Running& running = running_[life.owner];
    running.live_bytes += life.size - old_size;
    add_block(life, verdict_.pieces[life.owner], life.size, frame);
  }

  void ends(Life& life, const End& end) override {
    if (options_.baseline != nullptr && of(life.node).baseline) judge_baseline(life, end);
    if (life.owner == nobody) return;
    const Piece& piece = pieces_[life.owner];
    Evidence& evidence = verdict_.pieces[life.owner];
    Running& running = running_[life.owner];
    // What dies in a later frame than most of its group outlives it.
    if (end.freed && running.deaths != 0 && end.frame != running.death_frame && is_group(running)) {
      close_group(life.owner);
    }
    if (end.node != journal::no_site) ++evidence.freed_at[recording_.labels->speaker_place(end.node)];
    evidence.most_frames_crossed = std::max(evidence.most_frames_crossed, end.frame - life.frame);
    if (end.freed && end.thread != life.thread) ++evidence.remote_frees;
    if (piece.near != What::leave) judge_as(piece.near, life, end, evidence.near);
    if (piece.what != What::leave) {
      if (judge_as(piece.what, life, end, evidence.what)) {
        verdict_.held_cost += life.cost;
        if (options_.routes) {
          for (const std::uint32_t event : follower_->events_of(life)) {
            const std::uint16_t grows = life.copies != 0 && recording_.is_growth(event) ? 1 : 0;
            verdict_.blocks.push_back({event, static_cast<std::uint16_t>(life.owner), grows});
          }
        }
      }
    }
    if (end.freed) leave_region(life, end, evidence);
  }

  void conclude() {
    for (std::size_t i = 0; i < running_.size(); ++i) {
      if (running_[i].deaths != 0) close_group(i);
      const std::uint32_t frame = running_[i].frame;
      if (frame == follower_->frame() && follower_->began_in_window(frame)) --verdict_.pieces[i].frames;
    }
    std::sort(verdict_.blocks.begin(), verdict_.blocks.end(),
              [](const auto& a, const auto& b) { return a.event < b.event; });
  }

 private:
  struct Node {
    Match pieces;
    std::int32_t scope_depth = -1;  ///< of the piece's function, on this stack; -1: it is not there
    bool known = false;             ///< the innermost function allocates in the first journal, too
    bool baseline = false;
    bool made = false;
  };
  /// A thread's part of a region.
  struct Region {
    std::uint64_t next = 0;
    std::uint32_t frame = 0;
    std::uint64_t live = 0;
  };
  struct Running {
    std::map<std::uint32_t, Region> regions;  ///< by thread
    std::uint64_t live_blocks = 0;
    std::uint64_t live_bytes = 0;
    std::uint64_t used = 0;  ///< bytes of an arena since its last rewind
    std::uint64_t deaths = 0;
    std::uint64_t live_before = 0;
    std::uint64_t survivors = 0;
    std::uint32_t generation = 0;
    std::uint32_t frame = 0;
    std::uint32_t death_frame = 0;  ///< of the last death
  };

  bool is(const Life& life, What what) const { return pieces_[life.owner].what == what; }
  bool has_regions(const Life& life) const { return is(life, What::temp) || is(life, What::temp_scope); }
  /// A life's generation: as regions need no generation, both share a field.
  std::uint64_t& generation_of(Life& life) const { return has_regions(life) ? unused_ : life.offset; }

  const Node& of(std::uint32_t index) {
    Node& node = of_node_[index];
    if (node.made) return node;
    node.made = true;
    const Context context = contexts_.of(index);
    node.pieces = matcher_.of(context);
    node.known = !context.empty() && context.front() < known_words_;
    node.baseline = options_.baseline != nullptr && options_.baseline->contains(hashes_[index]);
    const std::uint32_t any = node.pieces.is_empty()         ? nobody
                              : node.pieces.of_sizes.empty() ? node.pieces.others
                                                             : node.pieces.of_sizes.front().second;
    if (any != nobody && !pieces_[any].scope_function.empty()) {
      node.scope_depth = depth_of(index, pieces_[any].scope_function);
    }
    return node;
  }

  std::int32_t depth_of(std::uint32_t node, const std::string& function) const {
    const auto nodes = recording_.stacks->nodes();
    for (; node != journal::no_node; node = nodes[node].parent) {
      for (const sites::Label& label : recording_.labels->of_frame(nodes[node].frame)) {
        if (recording_.labels->text(label.function) == function) {
          return static_cast<std::int32_t>(recording_.depth[node]);
        }
      }
    }
    return -1;
  }

  void spend(Life& life, double cost, std::uint32_t frame) {
    verdict_.cost += cost;
    life.cost += cost;
    if (life.owner == nobody) return;
    verdict_.pieces[life.owner].cost += cost;
    if (frame == options_.worst_frame && frame != 0 && life.thread == recording_.frame_thread) {
      verdict_.pieces[life.owner].worst_frame_cost += cost;
    }
  }

  void add_block(Life& life, Evidence& evidence, std::uint64_t size, std::uint32_t frame) {
    Running& running = running_[life.owner];
    ++evidence.blocks;
    evidence.bytes += size;
    if (has_regions(life)) {
      Region& region = running.regions[life.thread];
      if (is(life, What::temp) && region.frame != frame) region.next = 0;
      region.frame = frame;
      if (life.reallocations == 0) ++region.live;
      life.offset = region.next;
      region.next += stride_of(size);
      evidence.region_bytes = std::max(evidence.region_bytes, region.next);
    } else if (is(life, What::rewindable)) {
      running.used += stride_of(size);
      evidence.region_bytes = std::max(evidence.region_bytes, running.used);
    } else if (is(life, What::pool) || is(life, What::reserve)) {
      evidence.region_bytes = std::max(evidence.region_bytes, running.live_blocks * pieces_[life.owner].bytes);
    } else {
      evidence.region_bytes = std::max(evidence.region_bytes, running.live_bytes);
    }
  }

  void leave_region(Life& life, const End& end, Evidence& evidence) {
    Running& running = running_[life.owner];
    if (has_regions(life)) {
      Region& region = running.regions[life.thread];
      if (life.offset + stride_of(life.size) == region.next &&
          (is(life, What::temp_scope) || life.frame == end.frame)) {
        region.next = life.offset;
        ++evidence.reverse_frees;
      }
      if (region.live != 0 && --region.live == 0 && is(life, What::temp_scope)) region.next = 0;
    }
    running.death_frame = end.frame;
    if (running.deaths++ == 0)
      running.live_before = running.live_blocks - std::min(running.live_blocks, running.survivors);
    running.live_bytes -= life.size;
    --running.live_blocks;
  }

  static bool is_group(const Running& running) {
    constexpr std::uint64_t least_group = 16;
    return running.deaths >= least_group && running.deaths * 10 >= running.live_before * 9;
  }

  /// Deaths without a birth between them are over; most of a group ends its generation.
  void close_group(std::size_t piece) {
    Running& running = running_[piece];
    if (is_group(running)) {
      ++running.generation;
      running.used = 0;
      running.survivors = running.live_blocks;
      if (pieces_[piece].what == What::rewindable) ++verdict_.pieces[piece].periods;
    } else {
      running.survivors = std::min(running.survivors, running.live_blocks);
    }
    running.deaths = 0;
  }

  void judge_baseline(const Life& life, const End& end) {
    if (judge_as(What::temp, life, end, verdict_.baseline)) verdict_.baseline_held_cost += life.cost;
  }

  /// True when the advice holds for the life.
  bool judge_as(What what, const Life& life, const End& end, Held& held) {
    std::string why;
    if (!end.freed && is_open(what, life, end)) {
      ++held.undecided;
      return false;
    }
    if (holds(what, life, end)) {
      ++held.holds;
      return true;
    }
    if (held.examples.size() < most_examples) {
      held.examples.push_back({.event = life.event,
                               .born_ns = life.born_ns,
                               .ended_ns = end.ns,
                               .bytes = life.largest,
                               .freed = end.freed,
                               .why = reason(what, life, end)});
    }
    ++held.broken;
    return false;
  }

  /// Alive at the end, but not for longer than the advice allows.
  bool is_open(What what, const Life& life, const End& end) const {
    switch (what) {
      case What::temp:
      case What::temp_scope:
      case What::keep:
        return recording_.has_frames() ? end.frame == life.frame : ends_early_;
      case What::temp_job:
        return end.frame - life.frame <= temp_job_frames;
      case What::rewindable:
        return ends_early_;
      default:
        return false;
    }
  }

  bool holds(What what, const Life& life, const End& end) {
    const std::uint32_t crossed = end.frame - life.frame;
    const bool same_thread = end.freed && end.thread == life.thread;
    switch (what) {
      case What::leave:
        return true;
      case What::temp:
        return same_thread && crossed == 0 && life.thread == recording_.frame_thread;
      case What::temp_scope:
        return is_in_scope(life, end);
      case What::temp_job:
        return end.freed && crossed <= temp_job_frames;
      case What::pool:
        return life.largest <= pieces_[life.owner].bytes && life.reallocations == 0;
      case What::rewindable:
        return end.freed && life.offset == running_[life.owner].generation;
      case What::reserve:
        return life.largest <= pieces_[life.owner].bytes;
      case What::keep:
        return same_thread && crossed <= 1;
    }
    return false;
  }

  bool is_in_scope(const Life& life, const End& end) {
    if (!end.freed || !end.same_call || (life.thread == recording_.frame_thread && end.frame != life.frame))
      return false;
    if (recording_.labels->text(end.place.function) == pieces_[life.owner].scope_function) return true;
    const std::int32_t depth = of(life.node).scope_depth;
    const std::int32_t shared =
        end.place.caller == journal::no_node ? 0 : static_cast<std::int32_t>(recording_.depth[end.place.caller]) + 1;
    return depth >= 0 && depth <= shared;
  }

  std::string thread_name(std::uint32_t thread) const {
    const auto& threads = recording_.header.threads;
    const std::string name = thread < threads.size() ? threads[thread].name : std::string();
    return "thread " + std::to_string(thread) + (name.empty() ? "" : " (" + name + ")");
  }

  std::string reason(What what, const Life& life, const End& end) const {
    if (what == What::pool && life.reallocations != 0) return "grows";
    if (what == What::pool || what == What::reserve) return "is larger";
    if (!end.freed) return "is never freed";
    if (what == What::rewindable) return "outlives its group";
    const std::uint32_t crossed = end.frame - life.frame;
    std::string later;
    if (crossed != 0) later.append(" ").append(std::to_string(crossed)).append(crossed == 1 ? " frame" : " frames");
    if (crossed != 0) later.append(" later");
    if (end.thread != life.thread && what != What::temp_job) return "is freed by " + thread_name(end.thread) + later;
    if (crossed != 0) return "is freed" + later;
    if (what == What::temp) return "belongs to " + thread_name(life.thread) + ", which marks no frames";
    return "outlives the call";
  }

  const std::vector<Piece>& pieces_;
  const Recording& recording_;
  const JudgeOptions& options_;
  Verdict& verdict_;
  Matcher matcher_;
  Contexts contexts_;
  std::uint32_t known_words_;
  bool ends_early_;
  std::vector<Node> of_node_;
  std::vector<Running> running_;  ///< by piece
  std::vector<std::uint64_t> hashes_;
  const Follower* follower_ = nullptr;
  mutable std::uint64_t unused_ = 0;
};

}  // namespace

Baseline baseline_of(const Profile& profile, const Recording& recording) {
  const std::vector<std::uint64_t> hashes = name_hashes(recording);
  Baseline baseline;
  for (const Leaf& leaf : profile.leaves) {
    if (leaf.tally.decided() != 0 && leaf.tally.in_frame == leaf.tally.decided()) baseline.insert(hashes[leaf.node]);
  }
  return baseline;
}

Verdict judge(const std::vector<Piece>& pieces, const Recording& recording, Words& words, const JudgeOptions& options,
              const journal::Progress& progress) {
  Verdict verdict;
  Judge judge(pieces, recording, words, options, verdict);
  Follower follower(recording, options.window, judge);
  judge.follow(follower);
  follower.run(progress);
  judge.conclude();
  return verdict;
}

}  // namespace blockyard::advise
