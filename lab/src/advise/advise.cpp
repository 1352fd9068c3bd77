#include "advise/advise.hpp"

#include <algorithm>
#include <bit>
#include <utility>

#include "journal/routes.hpp"

namespace blockyard::advise {
namespace {

/// So many of the sites that are left alone get evidence: all near misses are among them, mostly.
constexpr std::size_t most_left = 40;
/// A journal of which fewer allocations come from known functions is no recording of the same program.
constexpr double least_known = 0.01;
/// A reserve covers this part of the lives, so as many counter-examples are no contradiction.
constexpr double reserve_misses = 0.01;

bool is_held(const Piece& piece, const Held& held) {
  const double most = piece.what == What::reserve ? reserve_misses * static_cast<double>(held.holds + held.broken) : 0;
  return static_cast<double>(held.broken) <= most;
}

/// Near misses first, then the most expensive.
std::vector<Piece> worth_judging(const std::vector<Piece>& left) {
  std::vector<Piece> chosen;
  for (const bool near : {true, false}) {
    for (const Piece& piece : left) {
      if ((piece.reason == Reason::near_miss) == near && chosen.size() < most_left) chosen.push_back(piece);
    }
  }
  return chosen;
}

/// Advice from each half of the journal, judged on the other half.
Validation halves(const Recording& recording, Words& words, bool all) {
  Validation result;
  const std::uint64_t middle = recording.duration_ns / 2;
  const Window first{.from_ns = 0, .to_ns = middle};
  const Window second{.from_ns = middle};
  for (const auto& [from, on] : {std::pair(first, second), std::pair(second, first)}) {
    const Profile half = profile(recording, from, {});
    const std::vector<Context> contexts = contexts_of(half, recording, words);
    const Choice choice = choose(half, recording, words, contexts, all);
    const Baseline baseline = baseline_of(half, recording);
    result.add(choice.advised, judge(choice.advised, recording, words, {.window = on, .baseline = &baseline}, {}));
  }
  return result;
}

/// One scope for sites that take turns would hold the blocks of all of them to the end of the function: such sites had
/// better have a scope each. One arena for sites whose blocks are seldom dead all at once could seldom be rewound: they
/// have one each, and a site that has no such moment by itself has none. False when nothing changed.
bool split_shared(Choice& choice, const Verdict& verdict) {
  constexpr std::uint64_t little = std::uint64_t{64} << 10;
  std::vector<Piece> result;
  bool changed = false;
  for (std::size_t i = 0; i < choice.advised.size(); ++i) {
    Piece& piece = choice.advised[i];
    const Evidence& evidence = verdict.pieces[i];
    const bool seldom_rewinds = piece.what == What::rewindable && 2 * evidence.periods < piece.tally.groups;
    // With a scope each, the sites together would hold their bursts.
    const std::uint64_t apart = piece.tally.burst_bytes;
    const bool holds_much = piece.what == What::temp_scope && evidence.region_bytes > std::max(little, 2 * apart);
    if (!piece.parts.empty() && (seldom_rewinds || holds_much)) {
      result.insert(result.end(), piece.parts.begin(), piece.parts.end());
      changed = true;
    } else if (piece.what == What::rewindable && evidence.periods == 0) {
      piece.what = piece.near = What::leave;
      piece.reason = Reason::mixed;
      piece.saved = 0;
      choice.left.push_back(std::move(piece));
      changed = true;
    } else {
      result.push_back(std::move(piece));
    }
  }
  choice.advised = std::move(result);
  rank(choice.advised);
  return changed;
}

void write(const Advice& advice, const std::string& path) {
  journal::Routes routes;
  routes.events = advice.recording.events;
  routes.blocks = advice.verdict.blocks;
  for (std::size_t i = 0; i < advice.pieces.size(); ++i) {
    const Piece& piece = advice.pieces[i];
    if (piece.what == What::leave) break;
    const Evidence& evidence = advice.verdict.pieces[i];
    const bool has_region =
        piece.what == What::temp || piece.what == What::temp_scope || piece.what == What::rewindable;
    routes.routes.push_back({.kind = static_cast<journal::RouteKind>(piece.what),
                             .alignment_log2 = static_cast<std::uint8_t>(std::bit_width(evidence.alignment) - 1),
                             .group = static_cast<std::uint32_t>(i),
                             .bytes = has_region ? stride_of(evidence.region_bytes) : piece.bytes});
  }
  write_routes(routes, path);
}

}  // namespace

void Validation::add(const std::vector<Piece>& judged, const Verdict& verdict) {
  for (std::size_t i = 0; i < judged.size(); ++i) {
    if (judged[i].what == What::leave) continue;
    const Evidence& evidence = verdict.pieces[i];
    ++pieces;
    if (evidence.lives == 0) continue;
    ++pieces_met;
    if (is_held(judged[i], evidence.what)) ++pieces_held;
    holds += evidence.what.holds;
    broken += evidence.what.broken;
  }
  cost += verdict.cost;
  held_cost += verdict.held_cost;
  baseline_holds += verdict.baseline.holds;
  baseline_broken += verdict.baseline.broken;
  baseline_held_cost += verdict.baseline_held_cost;
}

Advice advise(const Options& options, const journal::Progress& progress) {
  Advice advice;
  const auto part = [&progress](double from, double to) -> journal::Progress {
    if (!progress) return {};
    return [&progress, from, to](double fraction) { progress(from + (to - from) * fraction); };
  };
  advice.recording = load(options.path, part(0, 0.1));
  const Recording& recording = advice.recording;
  advice.profile = profile(recording, {}, part(0.1, 0.3));
  if (advice.profile.leaves.empty()) {
    throw journal::Error(options.path + " has call stacks, but none of an allocation behind the preamble");
  }
  advice.contexts = contexts_of(advice.profile, recording, advice.words);
  if (options.wishes.empty()) {
    advice.choice = choose(advice.profile, recording, advice.words, advice.contexts, options.all);
  } else {
    advice.choice.advised = choose_wishes(options.wishes, advice.profile, recording, advice.words, advice.contexts);
  }
  const Baseline baseline = baseline_of(advice.profile, recording);
  const JudgeOptions on_itself{.window = {}, .routes = true, .worst_frame = advice.profile.worst_frame};
  for (bool again = true; again;) {
    auto& advised = advice.choice.advised;
    if (advised.size() > journal::most_routes) advised.resize(journal::most_routes);
    advice.pieces = advised;
    for (Piece& piece : worth_judging(advice.choice.left)) advice.pieces.push_back(std::move(piece));
    advice.verdict = judge(advice.pieces, recording, advice.words, on_itself, part(0.3, 0.5));
    again = options.wishes.empty() && split_shared(advice.choice, advice.verdict);
  }
  for (const std::string& path : options.on) {
    const Recording other = load(path, part(0.5, 0.55));
    const Verdict verdict =
        judge(advice.pieces, other, advice.words, {.window = {}, .baseline = &baseline}, part(0.55, 0.7));
    if (static_cast<double>(verdict.known_lives) < least_known * static_cast<double>(verdict.lives)) {
      throw journal::Error(path + " shares no function that allocates with " + options.path +
                           "; --on wants another recording of the same program");
    }
    Validation validation;
    validation.journal = path;
    validation.add(advice.pieces, verdict);
    advice.on.push_back(validation);
    advice.on_verdicts.push_back(verdict);
  }
  if (options.wishes.empty()) advice.halves = halves(recording, advice.words, options.all);
  if (!options.routes.empty()) write(advice, options.routes);
  return advice;
}

}  // namespace blockyard::advise
