// A journal as advice needs it: its stacks, its frame thread, and the names of allocation contexts that are the same in
// every recording of a program.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "journal/event.hpp"
#include "journal/progress.hpp"
#include "journal/stacks.hpp"
#include "sites/labels.hpp"

namespace blockyard::advise {

inline constexpr std::uint32_t no_thread = std::numeric_limits<std::uint32_t>::max();

/// A buffer grows as a std::vector does: its thread allocates a larger block in the same function, then frees the old.
struct Growth {
  std::uint32_t allocation = 0;  ///< event
  std::uint32_t free = 0;        ///< the thread's next event
};

/// Two passes over the journal give all of it.
struct Recording {
  std::string path;
  journal::Header header;
  std::unique_ptr<journal::Stacks> stacks;
  std::unique_ptr<sites::Labels> labels;
  std::vector<std::uint32_t> depth;  ///< by node
  std::uint32_t frame_thread = no_thread;
  std::uint64_t marks = 0;  ///< of the frame thread
  std::uint64_t events = 0;
  std::uint64_t allocations = 0;
  std::uint64_t duration_ns = 0;
  std::set<std::uint32_t> enclosing;  ///< texts of Labels: functions that enclose frames or the program
  std::vector<bool> starts_program;   ///< by node: the C library's function that calls main()
  std::vector<std::uint32_t> own;     ///< by node: itself or its nearest caller that the program can change, or no_node
  std::vector<bool> foreign;          ///< by text of Labels: a function of a library of the system
  std::vector<bool> asks_alone;       ///< by node: a library of the system asks for the block on its own behalf
  std::vector<std::pair<std::uint64_t, bool>> phases;  ///< that the program named: begin (ns), and whether it is "play"
  bool names_play = false;
  std::vector<Growth> growths;  ///< of chains of two and more, in the order of their allocations
  std::vector<std::string> notes;

  /// Whether the program named what goes on then "play".
  bool plays_at(std::uint64_t time_ns) const;
  bool has_frames() const { return frame_thread != no_thread; }
  /// Whether the event is the allocation of a Growth. O(log n).
  bool is_growth(std::uint32_t event) const;
  /// A label of the frame at `node`: the innermost that is no wrapper.
  const sites::Label& label_of(std::uint32_t node) const;
};

/// Throws journal::Error; without allocations or stacks it says what to do.
Recording load(const std::string& path, const journal::Progress& progress);

/// One step of a context: a function, or a line of the function before.
struct Word {
  std::string function;
  std::string file;
  std::string module;
  std::uint64_t place = 0;  ///< line, or the address in the module where lines are not known
  bool is_place = false;
  bool is_address = false;
  bool is_asker = false;    ///< the standard library's function that the one before calls for the block
  bool is_foreign = false;  ///< a function of a library of the system
};

/// Steps as numbers that are the same for all recordings. A context is a list of them, from the innermost function
/// outwards. Wrappers such as operator new are not in it.
class Words {
 public:
  const Word& operator[](std::uint32_t word) const { return words_[word]; }
  std::uint32_t size() const { return static_cast<std::uint32_t>(words_.size()); }
  std::uint32_t intern(Word word);

 private:
  std::vector<Word> words_;
  std::unordered_map<std::string, std::uint32_t> index_;
};

/// The innermost function is followed by its line, and that by the standard library's function through which it asks,
/// where there is one: one line may ask by several. Then come its callers, each with its line.
///
/// A context has at most so many functions, and as many lines. It has more where all of them belong to a library of the
/// system: the function of the program that calls it is in the context.
inline constexpr std::size_t most_functions = 8;
using Context = std::vector<std::uint32_t>;

/// Finds the context of each stack of a recording. Each call is O(depth).
class Contexts {
 public:
  Contexts(const Recording& recording, Words& words) : recording_(recording), words_(words) {}
  Context of(std::uint32_t node);

 private:
  std::uint32_t function_word(const sites::Label& label);
  std::uint32_t asker_word(std::uint32_t function);
  std::uint32_t place_word(const sites::Label& label, std::uint32_t frame);

  const Recording& recording_;
  Words& words_;
  std::unordered_map<std::uint64_t, std::uint32_t> functions_;
  std::unordered_map<std::uint64_t, std::uint32_t> places_;
  std::unordered_map<std::uint32_t, std::uint32_t> askers_;
};

}  // namespace blockyard::advise
