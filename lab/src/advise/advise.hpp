// Advice for a program: what to change at which sites, derived from one journal and judged on others.
#pragma once

#include <string>
#include <vector>

#include "advise/choose.hpp"
#include "advise/judge.hpp"
#include "advise/recording.hpp"
#include "advise/tally.hpp"
#include "journal/json_text.hpp"

namespace blockyard::advise {

struct Options {
  std::string path;
  std::vector<std::string> on;  ///< journals that judge the advice
  std::string routes;           ///< file to write; empty is none
  std::vector<Wish> wishes;     ///< instead of advice
  bool all = false;             ///< advise what libraries of the system ask for on their own behalf, too
};

/// How advice held where it was not derived from.
struct Validation {
  std::string journal;  ///< empty: the halves of the journal itself
  std::uint64_t pieces = 0;
  std::uint64_t pieces_met = 0;   ///< with a life
  std::uint64_t pieces_held = 0;  ///< of them, without a counter-example
  std::uint64_t holds = 0;        ///< lives
  std::uint64_t broken = 0;
  double cost = 0;  ///< estimated ns
  double held_cost = 0;
  std::uint64_t baseline_holds = 0;
  std::uint64_t baseline_broken = 0;
  double baseline_held_cost = 0;

  void add(const std::vector<Piece>& pieces, const Verdict& verdict);
};

struct Advice {
  Recording recording;
  Words words;
  Profile profile;
  std::vector<Context> contexts;  ///< by leaf
  Choice choice;
  std::vector<Piece> pieces;  ///< the advised ones, then those left alone that `verdict` judges
  Verdict verdict;            ///< of `pieces`, on the journal itself
  Validation halves;
  std::vector<Validation> on;
  std::vector<Verdict> on_verdicts;  ///< of `pieces`
};

/// Reads the journal up to ten times and the others twice. Memory grows with the live blocks and the stacks. Throws
/// journal::Error.
Advice advise(const Options& options, const journal::Progress& progress);

/// One object: docs/reference/advice.md names its members.
journal::Json advice_json(const Advice& advice);

}  // namespace blockyard::advise
