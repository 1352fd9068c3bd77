// What a site's blocks did, in figures that can be added up over sites.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "advise/kinds.hpp"
#include "advise/lives.hpp"
#include "advise/recording.hpp"

namespace blockyard::advise {

/// How often sizes occur that need the same stride: a few strides exactly, the rest together.
class Sizes {
 public:
  void add(std::uint64_t size, std::uint64_t count = 1);
  void add(const Sizes& other);
  std::uint64_t top() const;  ///< the largest size of the most frequent stride
  std::uint64_t top_count() const;

 private:
  struct One {
    std::uint64_t largest = 0;  ///< size
    std::uint64_t count = 0;
  };
  std::array<One, 4> known_{};
  std::uint64_t others_ = 0;
};

/// The largest size of each life, in steps of an eighth of a power of two; each step remembers its largest.
class Largest {
 public:
  void add(std::uint64_t size);
  void add(const Largest& other);
  /// The least size that so many of the lives do not exceed, rounded up to a step's largest.
  std::uint64_t quantile(double share) const;

 private:
  struct Step {
    std::uint64_t count = 0;
    std::uint64_t largest = 0;
  };
  std::map<std::uint32_t, Step> steps_;
};

/// A group that died together.
struct Generation {
  std::uint64_t born_ns = 0;
  std::uint64_t died_ns = 0;
};

struct Tally {
  std::uint64_t lives = 0;
  std::uint64_t blocks = 0;  ///< reallocations included
  std::uint64_t bytes = 0;
  double cost = 0;          ///< estimated ns of the allocations and frees
  double realloc_cost = 0;  ///< estimated ns of the reallocations
  double worst_frame_cost = 0;
  std::uint64_t freed = 0;
  std::uint64_t alive = 0;      ///< where the window ends
  std::uint64_t undecided = 0;  ///< of them, born in the frame that had not ended
  std::uint64_t in_frame = 0;   ///< freed by the frame thread, which allocated them, in their frame
  std::uint64_t remote_in_frame = 0;
  std::uint64_t within_job = 0;  ///< freed by any thread after at most temp_job_frames ends of frames
  std::uint64_t scoped = 0;      ///< freed in the call of a function that allocated them
  std::uint64_t kept = 0;        ///< freed by their thread before the next frame ended
  std::uint64_t long_lives = 0;
  std::uint64_t grown = 0;  ///< lives with a reallocation
  std::uint64_t reallocations = 0;
  std::uint64_t copies = 0;   ///< of them: by an allocation and a free
  std::uint64_t threads = 0;  ///< a bit each; the last bit stands for all further ones
  std::uint64_t peak_blocks = 0;
  std::uint64_t peak_bytes = 0;
  std::uint64_t frame_bytes = 0;  ///< most in one frame
  std::uint64_t burst_bytes = 0;  ///< most between two moments without a live block
  std::uint64_t bursts = 0;       ///< such moments
  std::uint64_t frames = 0;       ///< whole ones of the window with a life that began in it
  std::uint64_t frames_alike = 0;
  std::uint64_t frames_met = 0;   ///< as `frames`, but of several sites that of the one with most
  std::uint64_t group_lives = 0;  ///< that died in a group
  std::uint64_t loose_lives = 0;  ///< that did not
  std::uint64_t survivors = 0;    ///< that outlived their group
  std::uint64_t groups = 0;
  Sizes sizes;
  std::shared_ptr<Largest> largest;  ///< null until a life grows
  std::vector<Generation> generations;

  void add(const Tally& other);
  std::uint64_t decided() const { return lives - undecided; }
};

/// The lives of a call stack that began with one size. Blocks of one stack and different sizes may be different things
/// with different fates.
struct Population {
  std::uint64_t size = 0;
  Tally tally;
};
/// A stack that asks for more sizes asks for whatever it likes: they tell nothing.
inline constexpr std::size_t most_populations = 8;

/// A call stack that allocates.
struct Leaf {
  std::uint32_t node = 0;
  std::uint32_t scope_function = sites::SharedFunction::none;  ///< a text of Labels; where a scope would hold all
  std::uint32_t scope_depth = ~0U;                             ///< its place on the stack, counted from the root
  std::uint64_t size = 0;                                      ///< of the first life
  Tally tally;
  std::vector<Population> populations;  ///< empty while all lives begin with one size
  bool has_more_sizes = false;          ///< than most_populations
};

struct Profile {
  std::vector<Leaf> leaves;
  double cost = 0;                   ///< of all lives, estimated ns
  double worst_frame_cost = 0;       ///< of the frame thread, of frames that do not load
  std::uint32_t worst_frame = 0;     ///< 0 is none
  std::uint64_t worst_frame_ns = 0;  ///< its first allocation
  std::uint32_t frames = 0;
  std::uint64_t duration_ns = 0;
};

/// One pass over a part of the journal.
Profile profile(const Recording& recording, Window window, const journal::Progress& progress);

}  // namespace blockyard::advise
