// The lives of a journal's blocks. A *life* begins with an allocation and ends with a free; a reallocation goes on with
// it.
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "advise/recording.hpp"
#include "journal/flat_map.hpp"
#include "journal/progress.hpp"
#include "sites/shared_function.hpp"

namespace blockyard::advise {

struct Life {
  std::uint64_t born_ns = 0;
  std::uint64_t born_turn = 0;  ///< the thread's event number, for Follower's question whether a call still goes on
  std::uint64_t size = 0;       ///< now
  std::uint64_t largest = 0;
  std::uint64_t bytes = 0;   ///< of all its blocks together
  std::uint64_t offset = 0;  ///< for the listener
  double cost = 0;           ///< for the listener
  std::uint32_t node = 0;    ///< stack of the allocation
  std::uint32_t frame = 0;
  std::uint32_t event = 0;  ///< of the allocation
  std::uint32_t thread = 0;
  std::uint32_t reallocations = 0;
  std::uint32_t copies = 0;       ///< of the reallocations: by an allocation and a free
  std::uint32_t more_events = 0;  ///< 1 + index of the list of its reallocations' events; 0 is none
  std::uint32_t owner = 0;        ///< for the listener
  std::uint32_t alignment = 0;
  bool counts = false;
};

struct End {
  std::uint64_t ns = 0;
  std::uint32_t thread = 0;
  std::uint32_t frame = 0;
  bool freed = false;                     ///< false: alive where the window ends
  std::uint32_t node = journal::no_site;  ///< stack of the free
  sites::SharedFunction::Place place;     ///< the function that allocation and free share
  bool same_call = false;                 ///< that function had not returned in between, as far as the stacks tell
};

/// A part of a journal: lives that begin from `from_ns` on; those that go on at `to_ns` count as alive.
struct Window {
  std::uint64_t from_ns = 0;
  std::uint64_t to_ns = std::numeric_limits<std::uint64_t>::max();
};

/// Is told of lives that begin in the window and have a call stack. Of all others it is told nothing.
class Listener {
 public:
  virtual ~Listener() = default;
  virtual void begins(Life& life) = 0;
  /// life.size is new already.
  virtual void grows(Life& life, std::uint64_t old_size, std::uint32_t frame) = 0;
  virtual void ends(Life& life, const End& end) = 0;
};

/// What is left of a call path when a thread goes on from event to event.
class CallPath {
 public:
  /// The thread's next event has this stack. Cost: the functions that returned or were called since the last.
  void go_to(std::uint32_t node, const Recording& recording);
  std::uint64_t turn() const { return turn_; }
  /// Whether the call at `node` has gone on since `turn`. True for no_node, the thread itself.
  bool goes_on(std::uint32_t node, std::uint64_t turn, const Recording& recording) const;
  /// The calls that have gone on since `turn`, the thread's first function first, and the one that they are in.
  std::vector<std::uint32_t> calls_since(std::uint64_t turn) const;

 private:
  struct Step {
    std::uint32_t node;
    std::uint64_t since;
  };
  std::vector<Step> steps_;
  std::vector<std::uint32_t> new_;
  std::uint64_t turn_ = 0;
};

/// One pass over a journal, or part of it. Memory grows with the live blocks.
class Follower {
 public:
  Follower(const Recording& recording, Window window, Listener& listener);
  void run(const journal::Progress& progress);

  /// The frame that goes on, from 1; 0 before the first mark, which is no frame. Nor is one that no mark has ended.
  std::uint32_t frame() const { return frame_; }
  /// Whole frames of the window.
  std::uint32_t frames() const { return first_frame_ == 0 ? 0 : frame_ - first_frame_; }
  /// Whether a frame began in the window, as far as its marks are known.
  bool began_in_window(std::uint32_t frame) const { return first_frame_ != 0 && frame >= first_frame_; }
  /// The events of a life, in order.
  std::vector<std::uint32_t> events_of(const Life& life) const;

 private:
  /// What a Growth allocates, until its free.
  struct Waiting {
    std::uint64_t block = journal::no_block;
    std::uint64_t size = 0;
    std::uint64_t event = 0;
  };

  void add(const journal::Event& event);
  void give(const journal::Event& event);
  void release(const journal::Event& event);
  void reallocate(const journal::Event& event);
  void move_into(const Waiting& given, const journal::Event& event);
  void grow(std::uint32_t index, std::uint64_t block, std::uint64_t size);
  void note(Life& life, std::uint64_t event);
  sites::SharedFunction::Place own_place(std::uint32_t allocation, std::uint32_t free);
  std::uint32_t take(std::uint64_t block);
  std::uint32_t new_life();
  void end_the_living();

  const Recording& recording_;
  Window window_;
  Listener& listener_;
  sites::SharedFunction shared_;
  journal::FlatMap<std::uint32_t> live_{1U << 16};  ///< block + 1 -> life
  std::vector<Life> lives_;
  std::vector<std::uint32_t> free_lives_;
  std::vector<std::vector<std::uint32_t>> more_events_;
  std::vector<std::uint32_t> free_lists_;
  std::vector<CallPath> paths_;   ///< by thread
  std::vector<Waiting> waiting_;  ///< by thread
  std::size_t next_growth_ = 0;
  std::uint64_t number_ = 0;  ///< of the event
  std::uint64_t now_ns_ = 0;
  std::uint32_t frame_ = 0;
  std::uint32_t first_frame_ = 0;  ///< of the window
};

}  // namespace blockyard::advise
