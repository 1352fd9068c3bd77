#include "advise/choose.hpp"

#include <algorithm>
#include <bit>
#include <iterator>
#include <map>
#include <span>
#include <string>
#include <tuple>

#include "advise/costs.hpp"
#include "journal/event.hpp"

namespace blockyard::advise {
namespace {

/// Fewer lives show no behaviour.
constexpr std::uint64_t least_lives = 16;
/// A level that loads is a frame of its own, or three: in so few frames nothing is seen to end with each of them.
constexpr std::uint64_t least_frames = 4;
/// A behaviour that fewer of the lives break is a near miss, not another behaviour.
constexpr double near_share = 0.98;
/// A change must save this part of the allocator's time, or have this part of the worst frame's.
constexpr double least_part = 0.0005;
constexpr double least_worst_part = 0.01;
/// What each further change costs the programmer, as a part of the allocator's time.
constexpr double change_part = 0.001;
/// "Every frame": of all frames, and alike.
constexpr double most_frames = 0.5;
constexpr double alike_share = 0.98;
constexpr std::uint64_t most_kept = 4;  ///< blocks a frame that a program keeps by hand
constexpr std::uint64_t least_pooled = 256;
constexpr std::uint64_t largest_pooled = std::uint64_t{32} << 10;
/// A group may have so many members that die early: they only wait for the rewind.
constexpr double most_loose = 0.1;
/// What dies later than this in the recording dies with the program.
constexpr double end_of_program = 0.95;
constexpr double reserve_quantile = 0.99;
/// What reserving may cost: so many times the peak, or so many bytes.
constexpr std::uint64_t reserve_factor = 8;
constexpr std::uint64_t reserve_bytes = 8 << 20;

enum class Status { no, near, holds };

Status status(std::uint64_t good, std::uint64_t all) {
  if (all < least_lives) return Status::no;
  if (good >= all) return Status::holds;
  return static_cast<double>(good) >= near_share * static_cast<double>(all) ? Status::near : Status::no;
}

struct Decision {
  What what = What::leave;
  What near = What::leave;
  std::uint64_t bytes = 0;
  double saved = 0;
};

class Judgement {
 public:
  Judgement(const Tally& tally, const Profile& profile, bool has_frames, bool has_scope)
      : tally_(tally), profile_(profile), has_frames_(has_frames), has_scope_(has_scope) {}

  Decision decide() const {
    Decision decision;
    for (const What what :
         {What::reserve, What::keep, What::temp_scope, What::temp, What::temp_job, What::rewindable, What::pool}) {
      if (of(what) != Status::holds) continue;
      decision.what = what;
      break;
    }
    for (const What what : {What::keep, What::temp_scope, What::temp, What::temp_job, What::rewindable, What::pool}) {
      if (what == decision.what) break;
      if (of(what) != Status::near && !is_remote(what)) continue;
      decision.near = what;
      break;
    }
    decision.bytes = bytes(decision.what);
    decision.saved = saved(decision.what);
    return decision;
  }

  std::uint64_t bytes(What what) const {
    if (what == What::pool) return tally_.sizes.top();
    return what == What::reserve && tally_.largest ? stride_of(tally_.largest->quantile(reserve_quantile)) : 0;
  }

  double saved(What what) const {
    const double all = tally_.cost + tally_.realloc_cost;
    const auto blocks = static_cast<double>(tally_.blocks);
    switch (what) {
      case What::leave:
        return 0;
      case What::temp:
        return all - cost::temp * blocks - cost::touch(tally_.frame_bytes, tally_.bytes);
      case What::temp_scope:
        return all - cost::temp_scope * blocks - cost::touch(tally_.burst_bytes, tally_.bytes);
      case What::temp_job:
        return all - cost::temp_job * blocks;
      case What::pool:
        return all - cost::pool * blocks;
      case What::rewindable:
        return all - cost::rewindable * blocks;
      case What::reserve:
        return tally_.realloc_cost;
      case What::keep:
        return all - cost::keep * blocks;
    }
    return 0;
  }

 private:
  Status of(What what) const {
    switch (what) {
      case What::leave:
        return Status::no;
      case What::temp:
        return tally_.frames_met >= least_frames ? in_frames(tally_.in_frame) : Status::no;
      case What::temp_scope:
        return scope();
      case What::temp_job:
        // Of other threads' blocks no frames are counted, and none of them is in_frame.
        return tally_.frames_met >= least_frames || tally_.in_frame == 0 ? in_frames(tally_.within_job) : Status::no;
      case What::pool:
        return pool();
      case What::rewindable:
        return rewindable();
      case What::reserve:
        return reserve();
      case What::keep:
        return keep();
    }
    return Status::no;
  }

  Status in_frames(std::uint64_t good) const { return has_frames_ ? status(good, tally_.decided()) : Status::no; }

  /// Dies in its frame, but on another thread: what makes it no temp is worth saying.
  bool is_remote(What what) const {
    return what == What::temp && tally_.remote_in_frame != 0 && tally_.decided() >= least_lives &&
           static_cast<double>(tally_.in_frame + tally_.remote_in_frame) >=
               near_share * static_cast<double>(tally_.decided());
  }

  Status scope() const {
    const Status scoped = status(tally_.scoped, tally_.decided());
    if (!has_scope_) return Status::no;
    if (scoped != Status::holds) return scoped;
    if (of(What::temp) == Status::holds) return tally_.burst_bytes * 2 <= tally_.frame_bytes ? scoped : Status::no;
    // Blocks that always overlap live longer than one call, whatever the stacks seem to say.
    return tally_.burst_bytes * 8 <= tally_.bytes ? scoped : Status::no;
  }

  Status keep() const {
    if (!has_frames_ || std::popcount(tally_.threads) != 1 || tally_.frames < least_lives) return Status::no;
    const auto frames = static_cast<double>(tally_.frames);
    const bool regular = static_cast<double>(tally_.frames_alike) >= alike_share * (frames - 1) &&
                         frames >= most_frames * static_cast<double>(profile_.frames) &&
                         tally_.lives <= most_kept * tally_.frames;
    return regular ? status(tally_.kept, tally_.decided()) : Status::no;
  }

  Status reserve() const {
    if (tally_.grown * 2 < tally_.lives || tally_.reallocations < tally_.grown * 2 || tally_.grown < least_lives / 2) {
      return Status::no;
    }
    const std::uint64_t held = bytes(What::reserve) * tally_.peak_blocks;
    return held <= std::max(reserve_bytes, reserve_factor * tally_.peak_bytes) ? Status::holds : Status::no;
  }

  Status pool() const {
    const bool comes_and_goes =
        tally_.lives >= least_pooled && tally_.freed * 2 >= tally_.lives && tally_.lives >= 2 * tally_.peak_blocks;
    if (!comes_and_goes || tally_.grown != 0 || tally_.sizes.top() > largest_pooled) return Status::no;
    return status(tally_.sizes.top_count(), tally_.blocks);
  }

  Status rewindable() const {
    const auto decided = static_cast<double>(tally_.decided());
    if (tally_.groups == 0 || static_cast<double>(tally_.long_lives) < (1 - most_loose) * decided) return Status::no;
    const auto duration = static_cast<double>(profile_.duration_ns);
    const bool goes_on =
        tally_.groups >= 2 || (!tally_.generations.empty() &&
                               static_cast<double>(tally_.generations.front().died_ns) < end_of_program * duration);
    if (!goes_on || static_cast<double>(tally_.loose_lives) > most_loose * decided) return Status::no;
    return status(tally_.lives - std::min(tally_.lives, tally_.survivors), tally_.lives);
  }

  const Tally& tally_;
  const Profile& profile_;
  bool has_frames_;
  bool has_scope_;
};

/// Leaves in the order of their contexts, from one on.
using Leaves = std::span<const std::uint32_t>;

/// The function in which one scope would hold every life of the leaves; none when there is no such function.
class ScopeFinder {
 public:
  explicit ScopeFinder(const Recording& recording) : recording_(recording) {}

  std::uint32_t find(const Profile& profile, Leaves leaves) const {
    constexpr std::size_t most_candidates = 4;
    std::vector<std::uint32_t> candidates;
    for (const std::uint32_t leaf : leaves) {
      const std::uint32_t function = profile.leaves[leaf].scope_function;
      if (function == sites::SharedFunction::none) continue;
      if (std::find(candidates.begin(), candidates.end(), function) != candidates.end()) continue;
      candidates.push_back(function);
      if (candidates.size() == most_candidates) break;
    }
    for (const std::uint32_t candidate : candidates) {
      if (std::all_of(leaves.begin(), leaves.end(),
                      [&](std::uint32_t leaf) { return encloses(candidate, profile.leaves[leaf]); })) {
        return candidate;
      }
    }
    return sites::SharedFunction::none;
  }

 private:
  /// Whether the function is on the leaf's stack, as far out as the scope must be.
  bool encloses(std::uint32_t function, const Leaf& leaf) const {
    if (leaf.scope_function == sites::SharedFunction::none) return true;
    const auto nodes = recording_.stacks->nodes();
    for (std::uint32_t node = leaf.node; node != journal::no_node; node = nodes[node].parent) {
      for (const sites::Label& label : recording_.labels->of_frame(nodes[node].frame)) {
        // Of a function that calls itself the innermost call would open the scope.
        if (label.function == function) return recording_.depth[node] <= leaf.scope_depth;
      }
    }
    return false;
  }
  const Recording& recording_;
};

class Chooser {
 public:
  Chooser(const Profile& profile, const Recording& recording, const Words& words, const std::vector<Context>& contexts)
      : profile_(profile), recording_(recording), words_(words), contexts_(contexts), scopes_(recording) {}

  Choice run(bool all) {
    Choice choice;
    std::vector<std::uint32_t> order;
    std::map<std::string, double> inside;
    for (std::uint32_t leaf = 0; leaf < profile_.leaves.size(); ++leaf) {
      const Leaf& one = profile_.leaves[leaf];
      if (all || !recording_.asks_alone[one.node]) {
        order.push_back(leaf);
      } else {
        const sites::Label& label = recording_.labels->speaker(one.node);
        inside[recording_.labels->text(label.module)] += one.tally.cost + one.tally.realloc_cost;
      }
    }
    for (const auto& [module, cost] : inside) choice.inside.push_back({module, cost});
    std::stable_sort(choice.inside.begin(), choice.inside.end(),
                     [](const Inside& a, const Inside& b) { return a.cost > b.cost; });
    std::sort(order.begin(), order.end(),
              [this](std::uint32_t a, std::uint32_t b) { return contexts_[a] < contexts_[b]; });
    for (Leaves rest = order; !rest.empty();) {
      const std::size_t count = same_until(rest, 0);
      Solution solution = solve(rest.first(count), 1);
      rest = rest.subspan(count);
      for (Piece& piece : solution.pieces) {
        (piece.what == What::leave ? choice.left : choice.advised).push_back(std::move(piece));
      }
    }
    merge(choice.advised);
    drop_small(choice);
    rank(choice.advised);
    std::sort(choice.left.begin(), choice.left.end(), [](const Piece& a, const Piece& b) {
      return a.tally.cost + a.tally.realloc_cost > b.tally.cost + b.tally.realloc_cost;
    });
    return choice;
  }

  /// The piece of these leaves, whatever their contexts.
  Piece piece_of(Leaves leaves, std::uint64_t size = 0) const {
    Piece piece;
    piece.size = size;
    piece.asker = ask_alike(leaves) ? asker_of(leaves.front()) : 0;
    double most = -1;
    for (const std::uint32_t leaf : leaves) {
      const Tally& tally = tally_of(profile_.leaves[leaf], size);
      piece.tally.add(tally);
      if (tally.cost + tally.realloc_cost > most) {
        most = tally.cost + tally.realloc_cost;
        piece.node = profile_.leaves[leaf].node;
      }
    }
    if (static_cast<double>(piece.tally.scoped) >= near_share * static_cast<double>(piece.tally.decided())) {
      const std::uint32_t function = scopes_.find(profile_, leaves);
      if (function != sites::SharedFunction::none) piece.scope_function = recording_.labels->text(function);
    }
    return piece;
  }

 private:
  struct Solution {
    double saved = 0;
    double cost = 0;
    std::vector<Piece> pieces;
    bool is_plain = true;  ///< nothing is advised or nearly so
    int changes = 0;       ///< pieces that are advised
  };

  /// Of the lives that began with this size, one of the leaf's; 0 is all.
  static const Tally& tally_of(const Leaf& leaf, std::uint64_t size) {
    for (const Population& one : leaf.populations) {
      if (one.size == size) return one.tally;
    }
    return leaf.tally;
  }

  /// The word of the standard library's function through which the leaf asks; 0 is none.
  std::uint32_t asker_of(std::uint32_t leaf) const {
    const Context& context = contexts_[leaf];
    return context.size() > 2 && words_[context[2]].is_asker ? context[2] : 0;
  }
  bool ask_alike(Leaves leaves) const {
    return std::all_of(leaves.begin(), leaves.end(),
                       [&](std::uint32_t leaf) { return asker_of(leaf) == asker_of(leaves.front()); });
  }

  /// How many of the leaves have the first one's step at `depth`.
  std::size_t same_until(Leaves leaves, std::size_t depth) const {
    const Context& first = contexts_[leaves.front()];
    std::size_t count = 1;
    if (first.size() <= depth) {
      while (count < leaves.size() && contexts_[leaves[count]].size() <= depth) ++count;
    } else {
      while (count < leaves.size() && contexts_[leaves[count]].size() > depth &&
             contexts_[leaves[count]][depth] == first[depth]) {
        ++count;
      }
    }
    return count;
  }

  Solution solve(Leaves leaves, std::size_t depth) const {
    Solution own = alike(leaves, depth);
    const Piece& piece = own.pieces.front();
    // A caller that all share changes nothing.
    while (depth < contexts_[leaves.front()].size() && same_until(leaves, depth) == leaves.size()) ++depth;
    const bool is_last = depth >= contexts_[leaves.front()].size() && same_until(leaves, depth) == leaves.size();
    if (is_last || own.cost < least_part * profile_.cost) return own;
    Solution parts;
    for (Leaves rest = leaves; !rest.empty();) {
      const std::size_t count = same_until(rest, depth);
      Solution part = solve(rest.first(count), depth + 1);
      rest = rest.subspan(count);
      parts.saved += part.saved;
      parts.is_plain = parts.is_plain && part.is_plain;
      parts.changes += part.changes;
      std::move(part.pieces.begin(), part.pieces.end(), std::back_inserter(parts.pieces));
    }
    if (parts.is_plain) return own;
    if (parts.changes == 0) return own.is_plain ? parts : own;
    if (piece.what == What::reserve && wants_other_sizes(piece, parts.pieces)) return parts;
    const double further = own.changes == 0 ? 0 : parts.changes - own.changes;
    return own.saved >= parts.saved - further * change_part * profile_.cost ? own : parts;
  }

  /// One piece for all of the leaves; or, where their blocks have nothing in common but a few sizes, one for each size
  /// whose blocks do.
  Solution alike(Leaves leaves, std::size_t depth) const {
    Solution own;
    own.pieces.push_back(decided(leaves, depth, 0));
    Piece& whole = own.pieces.front();
    own.cost = whole.tally.cost + whole.tally.realloc_cost;
    own.saved = whole.saved;
    own.is_plain = whole.what == What::leave && whole.near == What::leave;
    own.changes = whole.what == What::leave ? 0 : 1;
    if (whole.what != What::leave || own.cost < least_part * profile_.cost || !ask_alike(leaves)) return own;
    std::map<std::uint64_t, std::vector<std::uint32_t>> by_size;
    for (const std::uint32_t leaf : leaves) {
      const Leaf& one = profile_.leaves[leaf];
      if (one.has_more_sizes) return own;
      if (one.populations.empty()) by_size[one.size].push_back(leaf);
      for (const Population& part : one.populations) by_size[part.size].push_back(leaf);
      if (by_size.size() > most_populations) return own;
    }
    if (by_size.size() < 2) return own;
    std::vector<Piece> sized;
    for (const auto& [size, some] : by_size) {
      Piece piece = decided(some, depth, size);
      // What a few blocks break, they may break in any size; but a size is known where a block is asked for.
      const bool by_chance = whole.near != What::leave && piece.what != What::pool;
      const bool has_size = piece.what != What::leave && piece.what != What::reserve && piece.what != What::rewindable;
      if (!has_size || by_chance || piece.saved < least_part * profile_.cost) continue;
      sized.push_back(std::move(piece));
    }
    if (sized.empty()) return own;
    whole.near = What::leave;
    for (Piece& piece : sized) {
      whole.tally.lives -= piece.tally.lives;
      whole.tally.cost -= piece.tally.cost;
      whole.tally.realloc_cost -= piece.tally.realloc_cost;
      own.saved += piece.saved;
    }
    whole.reason = reason_of(whole);
    own.is_plain = false;
    own.changes = static_cast<int>(sized.size());
    if (whole.tally.lives == 0) own.pieces.clear();
    std::move(sized.begin(), sized.end(), std::back_inserter(own.pieces));
    return own;
  }

  /// Whether callers need other sizes than all of them together, so that each had better reserve its own.
  static bool wants_other_sizes(const Piece& all, const std::vector<Piece>& parts) {
    return std::all_of(parts.begin(), parts.end(), [](const Piece& one) { return one.what == What::reserve; }) &&
           std::any_of(parts.begin(), parts.end(), [&](const Piece& one) { return one.bytes * 3 <= all.bytes * 2; });
  }

  Piece decided(Leaves leaves, std::size_t depth, std::uint64_t size) const {
    Piece piece = piece_of(leaves, size);
    const Judgement judgement(piece.tally, profile_, recording_.has_frames(), !piece.scope_function.empty());
    const Decision decision = judgement.decide();
    piece.what = decision.what;
    piece.near = decision.near;
    piece.bytes = decision.bytes;
    piece.saved = decision.saved;
    if (piece.what == What::leave || piece.saved <= 0) {
      piece.what = What::leave;
      piece.saved = 0;
      piece.bytes = Judgement(piece.tally, profile_, true, true).bytes(piece.near);
      piece.reason = reason_of(piece);
    }
    const bool is_plain = piece.what == What::leave && piece.near == What::leave;
    std::size_t most = 0;
    for (const std::uint32_t leaf : is_plain ? leaves.first(1) : leaves) {
      const Context& context = contexts_[leaf];
      const std::size_t steps = std::min(is_plain ? depth : std::max(depth, steps_to_own(context)), context.size());
      const Context part(context.begin(), context.begin() + static_cast<std::ptrdiff_t>(steps));
      if (piece.contexts.empty() || piece.contexts.back() != part) piece.contexts.push_back(part);
      if (profile_.leaves[leaf].node == piece.node) most = piece.contexts.size() - 1;
    }
    std::swap(piece.contexts[0], piece.contexts[most]);
    return piece;
  }

  /// Up to the first function that is no library's; 0 when there is none. What was seen of a library tells nothing of
  /// other functions that call it.
  std::size_t steps_to_own(const Context& context) const {
    const auto own = std::find_if(context.begin(), context.end(), [this](std::uint32_t word) {
      return !words_[word].is_place && !words_[word].is_foreign;
    });
    return own == context.end() ? 0 : static_cast<std::size_t>(own - context.begin()) + 1;
  }

  static Reason reason_of(const Piece& piece) {
    if (piece.near != What::leave) return Reason::near_miss;
    return (piece.tally.long_lives + piece.tally.alive) * 2 >= piece.tally.lives ? Reason::long_lived : Reason::mixed;
  }

  bool is_small(const Piece& piece) const {
    return piece.saved < least_part * profile_.cost &&
           piece.tally.worst_frame_cost < least_worst_part * profile_.worst_frame_cost;
  }

  /// The function and line (0 where none is known) at which to change.
  using Place = std::pair<std::uint32_t, std::uint32_t>;

  Place place_of(const Piece& piece) const {
    std::uint32_t function = 0;
    for (const std::uint32_t word : piece.contexts.front()) {
      if (!words_[word].is_place) function = word;
    }
    const auto nodes = recording_.stacks->nodes();
    for (std::uint32_t node = piece.node; node != journal::no_node; node = nodes[node].parent) {
      for (const sites::Label& label : recording_.labels->of_frame(nodes[node].frame)) {
        if (recording_.labels->text(label.function) == words_[function].function) return {function, label.line};
      }
    }
    return {function, 0};
  }

  /// Groups of one lifetime are one arena, blocks of one function's scope are one scope, and what changes alike at one
  /// place is one change.
  void merge(std::vector<Piece>& pieces) const {
    std::vector<Piece> merged;
    std::map<std::tuple<What, std::string, Place, std::uint64_t, std::uint64_t>, std::size_t> alike;
    std::vector<std::size_t> arenas;
    for (Piece& piece : pieces) {
      std::size_t at = merged.size();
      if (piece.what == What::rewindable) {
        const auto arena = std::find_if(arenas.begin(), arenas.end(),
                                        [&](std::size_t other) { return die_together(merged[other], piece); });
        if (arena != arenas.end()) at = *arena;
        if (at == merged.size()) arenas.push_back(at);
      } else if (piece.what == What::temp_scope) {
        at = alike.try_emplace({piece.what, piece.scope_function, {}, 0, piece.size}, at).first->second;
      } else if (piece.what == What::temp || piece.what == What::temp_job || piece.what == What::pool) {
        at = alike.try_emplace({piece.what, "", place_of(piece), piece.bytes, piece.size}, at).first->second;
      }
      if (at == merged.size()) {
        merged.push_back(std::move(piece));
        continue;
      }
      Piece* const partner = &merged[at];
      if (partner->near != piece.near) partner->near = What::leave;
      if (partner->asker != piece.asker) partner->asker = 0;
      if (piece.what == What::temp_scope || piece.what == What::rewindable) {
        if (partner->parts.empty()) partner->parts.push_back(*partner);
        partner->parts.push_back(piece);
      }
      if (piece.tally.cost > partner->tally.cost) {
        partner->node = piece.node;
        std::swap(partner->contexts, piece.contexts);
      }
      partner->contexts.insert(partner->contexts.end(), piece.contexts.begin(), piece.contexts.end());
      partner->saved += piece.saved;
      partner->tally.add(piece.tally);
    }
    pieces = std::move(merged);
  }

  bool die_together(const Piece& a, const Piece& b) const {
    const auto& first = a.tally.generations;
    const auto& second = b.tally.generations;
    constexpr std::uint64_t frame_ns = 16'666'667;
    const std::uint64_t most = std::max(frame_ns, profile_.duration_ns / 100);
    return a.tally.groups == b.tally.groups && first.size() == second.size() &&
           std::equal(first.begin(), first.end(), second.begin(), [&](const Generation& one, const Generation& other) {
             return std::max(one.died_ns, other.died_ns) - std::min(one.died_ns, other.died_ns) <= most;
           });
  }

  void drop_small(Choice& choice) const {
    std::vector<Piece> kept;
    for (Piece& piece : choice.advised) {
      if (!is_small(piece)) {
        kept.push_back(std::move(piece));
        continue;
      }
      piece.what = piece.near = What::leave;
      piece.reason = Reason::few;
      piece.saved = 0;
      choice.left.push_back(std::move(piece));
    }
    choice.advised = std::move(kept);
    for (Piece& piece : choice.left) {
      if (piece.near != What::leave) continue;
      if (piece.tally.cost + piece.tally.realloc_cost < least_part * profile_.cost) piece.reason = Reason::few;
    }
  }

  const Profile& profile_;
  const Recording& recording_;
  const Words& words_;
  const std::vector<Context>& contexts_;
  ScopeFinder scopes_;
};

/// With or without its parameters, and with as much of its scope as the user likes, as for a debugger's breakpoint.
bool is_called(const std::string& function, const std::string& name) {
  for (std::size_t at = function.find(name); at != std::string::npos; at = function.find(name, at + 1)) {
    const std::size_t end = at + name.size();
    const bool begins = at == 0 || function[at - 1] == ':' || function[at - 1] == ' ';
    if (begins && (end == function.size() || function[end] == '(')) return true;
  }
  return false;
}

}  // namespace

void rank(std::vector<Piece>& pieces) {
  std::stable_sort(pieces.begin(), pieces.end(), [](const Piece& a, const Piece& b) { return a.saved > b.saved; });
}

std::vector<Context> contexts_of(const Profile& profile, const Recording& recording, Words& words) {
  Contexts contexts(recording, words);
  std::vector<Context> result;
  result.reserve(profile.leaves.size());
  for (const Leaf& leaf : profile.leaves) result.push_back(contexts.of(leaf.node));
  return result;
}

Choice choose(const Profile& profile, const Recording& recording, const Words& words,
              const std::vector<Context>& contexts, bool all) {
  return Chooser(profile, recording, words, contexts).run(all);
}

std::vector<Piece> choose_wishes(const std::vector<Wish>& wishes, const Profile& profile, const Recording& recording,
                                 const Words& words, const std::vector<Context>& contexts) {
  std::vector<std::vector<std::uint32_t>> leaves(wishes.size());
  std::vector<std::map<Context, bool>> prefixes(wishes.size());
  for (std::uint32_t leaf = 0; leaf < contexts.size(); ++leaf) {
    const Context& context = contexts[leaf];
    for (std::size_t step = 0; step < context.size(); ++step) {
      const Word& word = words[context[step]];
      if (word.is_place) continue;
      const auto wish = std::find_if(wishes.begin(), wishes.end(),
                                     [&](const Wish& one) { return is_called(word.function, one.site); });
      if (wish == wishes.end()) continue;
      const auto which = static_cast<std::size_t>(wish - wishes.begin());
      leaves[which].push_back(leaf);
      prefixes[which][Context(context.begin(), context.begin() + static_cast<std::ptrdiff_t>(step) + 1)] = true;
      break;
    }
  }
  const Chooser chooser(profile, recording, words, contexts);
  std::vector<Piece> pieces;
  for (std::size_t i = 0; i < wishes.size(); ++i) {
    const std::string& site = wishes[i].site;
    if (leaves[i].empty()) {
      throw journal::Error("no call stack of " + recording.path + " that allocates has a function '" + site +
                           "'; 'blockyard sites' lists them");
    }
    Piece piece = chooser.piece_of(leaves[i]);
    const What what = piece.what = wishes[i].what;
    for (const auto& [context, unused] : prefixes[i]) piece.contexts.push_back(context);
    if (what == What::temp_scope && piece.scope_function.empty()) {
      throw journal::Error("no function holds a temp_scope for '" + site +
                           "': its blocks are not freed in a function that allocated them");
    }
    if (what == What::reserve && !piece.tally.largest) {
      throw journal::Error("'" + site + "' can't reserve: none of its blocks grows");
    }
    if ((what == What::temp || what == What::temp_job) && !recording.has_frames()) {
      throw journal::Error(recording.path + " has no frame marks, and " + std::string(name_of(what)) +
                           " needs them; the program marks frames with by_frame_mark()");
    }
    const Judgement judgement(piece.tally, profile, recording.has_frames(), true);
    piece.bytes = judgement.bytes(what);
    piece.saved = judgement.saved(what);
    pieces.push_back(std::move(piece));
  }
  return pieces;
}

}  // namespace blockyard::advise
