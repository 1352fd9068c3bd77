// Chooses what to advise: for each context the one change that holds for all its blocks, and the contexts so that the
// fewest changes save the most.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "advise/kinds.hpp"
#include "advise/recording.hpp"
#include "advise/tally.hpp"

namespace blockyard::advise {

enum class Reason : std::uint8_t { none, few, near_miss, long_lived, mixed };

/// A change to make, or a group of sites to leave alone.
struct Piece {
  What what = What::leave;
  What near = What::leave;  ///< what would be better, but for a few blocks
  Reason reason = Reason::none;
  std::vector<Context> contexts;          ///< that of its most expensive stack first
  std::string scope_function;             ///< temp_scope: where; also of a near miss
  std::uint64_t bytes = 0;                ///< pool: of a block; reserve: N
  std::uint64_t size = 0;                 ///< only blocks that began with so many bytes; 0 is all
  std::uint32_t asker = 0;                ///< the word of the standard library's function that all ask through; or 0
  std::uint32_t node = journal::no_node;  ///< its most expensive stack
  double saved = 0;                       ///< estimated ns
  Tally tally;
  std::vector<Piece> parts;  ///< temp_scope, rewindable: what it was merged from; empty when from one
};

/// What a library of the system asks for on its own behalf: nobody but its authors can change that.
struct Inside {
  std::string module;
  double cost = 0;  ///< estimated ns
};

struct Choice {
  std::vector<Piece> advised;  ///< the most saving first
  std::vector<Piece> left;     ///< the most expensive first
  std::vector<Inside> inside;  ///< the most expensive first
};

/// Sorts the most saving first.
void rank(std::vector<Piece>& pieces);

/// Contexts of the leaves of a profile, in their order.
std::vector<Context> contexts_of(const Profile& profile, const Recording& recording, Words& words);

/// Expected O(leaves * depth of contexts). With `all` also what libraries of the system ask for on their own behalf.
Choice choose(const Profile& profile, const Recording& recording, const Words& words,
              const std::vector<Context>& contexts, bool all);

/// A site and the change that the user wants there.
struct Wish {
  std::string site;
  What what = What::leave;
};

/// Pieces for what the user asks: every stack with a function of that name belongs to the wish whose function is
/// innermost on it. Throws journal::Error for a site that does not exist and a wish that makes no sense there.
std::vector<Piece> choose_wishes(const std::vector<Wish>& wishes, const Profile& profile, const Recording& recording,
                                 const Words& words, const std::vector<Context>& contexts);

}  // namespace blockyard::advise
