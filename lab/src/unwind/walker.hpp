// Walks a thread's stack and numbers it.
//
// A walk goes from the caller of an allocation function towards the thread's beginning, by rules that are cached for
// each address. It keeps the last stack, and with each frame of it the words that were read to get to its caller. When
// a frame is one of the last stack's, at the same place, and none of the words above has changed, the rest of the stack
// is the last one's: unwinding is a function of those words.
#pragma once

#include <cstddef>
#include <cstdint>

#include "unwind/registers.hpp"
#include "unwind/rules.hpp"
#include "unwind/stack_memory.hpp"
#include "unwind/trie.hpp"

namespace blockyard::unwind {

/// Gets the nodes of the trie as they appear: each before its children. `frame` is an Address's bits, or end_marker
/// with the reason where the root of a stack is that it could not be walked further.
struct Sink {
  virtual void add_node(std::uint32_t, std::uint32_t, std::uint64_t) {}
  /// Numbers start again at 1.
  virtual void clear_nodes() {}

 protected:
  ~Sink() = default;
};

inline constexpr std::uint64_t end_marker = std::uint64_t{1} << 56;
constexpr std::uint64_t marker_of(End why) { return end_marker | static_cast<std::uint64_t>(why); }

/// One thread's walker. Its memory comes from the system and is touched as it is used, about 700 KiB for a stack of
/// 4,096 frames. Not thread-safe; a signal handler must not enter a walk that it has interrupted.
class Walker {
 public:
  static constexpr unsigned most_frames = 4096;

  /// nullptr when there is no memory. `depth` is the most frames to keep, 1 to most_frames; of a deeper stack, more
  /// than three quarters of them are kept.
  static Walker* create(unsigned depth);
  static void destroy(Walker* walker);

  /// The thread that uses it has changed, or its recording: nothing is known of its stack, and numbers start at 1. Its
  /// caller tells whoever reads the numbers.
  void start_thread();

  /// The number of the stack at `start`. No_node when there is no memory. Reads only memory that is known to be the
  /// stack on which the thread runs. No lock, no allocation, no exception; a system call only where a table grows, and
  /// for stacks that are not the thread's own.
  std::uint32_t walk(const Start& start, Sink& sink);

  /// Whether a stack pointer lies on the thread's own stack, not on a fiber's or a signal handler's, which may be
  /// small. Costs as walk() says.
  bool is_on_own_stack(std::uint64_t stack_pointer) { return !stack_.memory_for(stack_pointer).grows; }

  /// The last stack, from its last frame on; at most `capacity` are copied. Returns how many it has. For tests.
  std::size_t last_stack(Address* into, std::size_t capacity, End& end) const;

  /// Objects have been unloaded: all walkers forget what they know of addresses.
  static void objects_changed();

 private:
  struct Frame {
    Address address;
    std::uint64_t rsp;
    std::uint64_t rbp;
    std::uint64_t digest;     ///< of the path to here
    std::uint32_t words_end;  ///< its words and those of the frames above end here
    std::uint32_t pairs_end;  ///< the same of pairs
    bool needs_rbp;           ///< the rest of the walk depends on rbp
  };
  struct Word {
    std::uint64_t place;
    std::uint64_t value;
  };
  /// A saved rbp and the return address above it: what a frame with a frame pointer has. Compared in one step.
  struct Pair {
    using Words = std::uint64_t __attribute__((vector_size(16)));
    Words values;
    std::uint64_t place;
  };
  /// A frame on its way into the last stack.
  struct Step {
    Address address;
    std::uint64_t rsp;
    std::uint64_t rbp;
    Word cfa;             ///< place 0: none
    Word return_address;  ///< place 0: none
    Word saved_rbp;       ///< place 0: none
    bool uses_rbp;
    bool changes_rbp;
  };

  Walker() = default;

  unsigned follow(const Start& start);
  void follow_all_registers(const Start& start);
  End step_special(const SpecialRule& rule, StackMemory& memory, Step& step, Step& next);
  static std::uint64_t lowest_word(const Step& step);
  bool enter(std::uint64_t rsp, std::uint64_t from, bool is_signal_frame, StackMemory& memory);
  unsigned unchanged_frames(unsigned count, StackMemory& memory);
  std::uint32_t keep(unsigned kept, Sink& sink);
  unsigned first_kept(unsigned total) const;
  std::uint32_t number_cut_stack(Sink& sink);
  std::uint32_t number_path(unsigned kept, Sink& sink);
  std::uint32_t add_path(unsigned first, unsigned kept, End why, Sink& sink);
  Address address_at(unsigned index, unsigned kept) const;

  unsigned depth_;
  unsigned count_;            ///< frames of the last stack
  unsigned steps_;            ///< frames of the walk
  std::uint64_t generation_;  ///< of the loaded objects
  std::uint64_t top_;         ///< end of the highest word of the last stack
  End end_;                   ///< of the last stack
  End why_;                   ///< of the walk
  bool is_deep_;              ///< the last stack had more than most_frames, so it was not kept
  bool crossed_;              ///< the walk went from one stack to another
  bool needs_all_;            ///< the walk met a frame that needs more registers
  unsigned cut_first_;        ///< of the last stack that was cut: its first frame that was kept
  unsigned cut_known_;        ///< the frames from there to here have their digests in digests_, 0: none
  ThreadStack stack_;
  Trie trie_;
  Workspace space_;
  Frame frames_[most_frames];  ///< the last stack from the thread's beginning on
  Word words_[3 * most_frames];
  Pair pairs_[most_frames];
  Step path_[most_frames];              ///< the walk from its start on
  std::uint64_t digests_[most_frames];  ///< of a path that is no whole stack, from its first frame that is kept
};

}  // namespace blockyard::unwind
