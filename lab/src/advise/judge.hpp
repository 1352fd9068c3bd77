// Judges advice by every block of a journal, which need not be the one that it was derived from.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "advise/choose.hpp"
#include "advise/lives.hpp"
#include "advise/recording.hpp"
#include "journal/routes.hpp"

namespace blockyard::advise {

/// A life that breaks a piece of advice.
struct CounterExample {
  std::uint64_t event = 0;
  std::uint64_t born_ns = 0;
  std::uint64_t ended_ns = 0;
  std::uint64_t bytes = 0;
  bool freed = false;
  std::string why;
};
inline constexpr std::size_t most_examples = 10;

struct Held {
  std::uint64_t holds = 0;
  std::uint64_t broken = 0;
  std::uint64_t undecided = 0;           ///< alive where the window ends, and not broken so far
  std::vector<CounterExample> examples;  ///< the first
};

struct Evidence {
  std::uint64_t lives = 0;
  std::uint64_t blocks = 0;  ///< reallocations included
  std::uint64_t bytes = 0;
  std::uint64_t frames = 0;  ///< whole ones of the window with a life
  std::uint32_t most_frames_crossed = 0;
  std::uint64_t threads = 0;  ///< a bit each
  std::uint64_t remote_frees = 0;
  std::uint64_t reverse_frees = 0;  ///< of the newest block of a temp region
  std::uint64_t region_bytes = 0;   ///< temp, temp_scope, rewindable: most in use; others: bytes of live blocks
  std::uint64_t peak_blocks = 0;
  std::uint64_t periods = 0;                                  ///< scopes or groups
  std::unordered_map<std::uint32_t, std::uint64_t> nodes;     ///< lives by the stack of the allocation
  std::unordered_map<std::uint32_t, std::uint64_t> freed_at;  ///< lives by the label (Labels::all) that frees
  std::uint64_t other_sizes = 0;  ///< lives of the same sites, where the advice is about one size
  std::uint32_t alignment = 16;
  double cost = 0;  ///< estimated ns
  double worst_frame_cost = 0;
  Held what;
  Held near;
};

struct Verdict {
  std::vector<Evidence> pieces;
  double cost = 0;       ///< of all lives
  double held_cost = 0;  ///< of those of them for which it holds
  std::uint64_t lives = 0;
  std::uint64_t known_lives = 0;  ///< whose stack has a function that allocates in the first journal, too
  Held baseline;
  double baseline_held_cost = 0;
  std::vector<journal::RoutedBlock> blocks;  ///< of lives for which advice holds
};

/// "Temp for whatever died in its frame": the stacks of a profile whose blocks all did, by names.
using Baseline = std::unordered_set<std::uint64_t>;
Baseline baseline_of(const Profile& profile, const Recording& recording);

struct JudgeOptions {
  Window window;
  const Baseline* baseline = nullptr;
  bool routes = false;            ///< fill Verdict::blocks
  std::uint32_t worst_frame = 0;  ///< whose cost is told apart; 0 is none
};

/// The words of `pieces` are those of `words`. Throws journal::Error.
Verdict judge(const std::vector<Piece>& pieces, const Recording& recording, Words& words, const JudgeOptions& options,
              const journal::Progress& progress);

}  // namespace blockyard::advise
