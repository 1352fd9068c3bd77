// The call stacks of a journal: modules, frames, and a trie of stacks that grows from the beginning of a thread.
//
//   Event::site -> Node (the caller of malloc) -> its parent (that function's caller) -> ... -> a root
//   Node -> Frame (an address in a module) -> Function (name, file, line), once names are resolved
//
// Every table is append-only and interned, so an index stays valid and says all that is known.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "journal/event.hpp"
#include "journal/flat_map.hpp"

namespace blockyard::journal {

/// A frame's module when its address lies in none: code that was generated while the program ran.
inline constexpr std::uint32_t no_module = std::numeric_limits<std::uint32_t>::max();
/// A frame's module when it is no frame, but says why the stack could not be walked to its thread's beginning. Such a
/// frame is the root of its stack, and its address is a StackEnd.
inline constexpr std::uint32_t end_marker = no_module - 1;
/// The parent of a root. A site is a node, so this is no_site.
inline constexpr std::uint32_t no_node = no_site;
/// Module::unmapped_ns of a module that stayed mapped.
inline constexpr std::uint64_t never = std::numeric_limits<std::uint64_t>::max();

/// Why a stack ends before its thread's beginning. The numbers are the file's: never renumber.
enum class StackEnd : std::uint64_t {
  depth_limit = 0,         ///< as many frames as the recorder keeps
  no_rules = 1,            ///< the code at the last address has no unwind rules
  outside_stack = 2,       ///< the next frame would lie outside the thread's stack
  bad_return_address = 3,  ///< what should be a return address points to no code
  unreadable = 4,          ///< the memory that holds the next frame can't be read
  unknown = 5,
};

/// In words, for reports and messages; a number of a newer Blockyard is "unknown".
std::string_view stack_end_text(std::uint64_t reason);

/// A file that was mapped as code. A range of addresses can belong to several modules, one after another.
struct Module {
  std::string path;
  std::string build_id;         ///< hexadecimal, lower case; empty when the file has none
  std::uint64_t begin = 0;      ///< of its mapping in the recorded process
  std::uint64_t end = 0;        ///< exclusive
  std::uint64_t bias = 0;       ///< what the loader added to the file's own addresses
  std::uint64_t mapped_ns = 0;  ///< the journal's time; 0 for what was mapped when the journal began
  std::uint64_t unmapped_ns = never;
};

/// Where a call stands. The address is ready for look-up: return address - 1 for a caller, and the interrupted address
/// itself below a signal handler.
struct Frame {
  std::uint32_t module = no_module;
  std::uint64_t address = 0;  ///< less the module's bias; absolute in no module; a StackEnd in an end marker
};

struct Node {
  std::uint32_t parent = no_node;  ///< the caller; below this node's own index
  std::uint32_t frame = 0;
};

/// How an address of a module is written, such as "+0x1234". As a function's name it is where the function begins, and
/// says that nothing names it.
std::string place_name(std::uint64_t address);
inline bool is_place_name(std::string_view name) { return name.starts_with("+0x"); }

/// A function that a frame's address belongs to. Texts are indices for Stacks::text().
struct Function {
  std::uint32_t name = 0;  ///< demangled, or a place_name()
  std::uint32_t file = 0;
  std::uint32_t line = 0;  ///< 0 is unknown
};

/// The same with its texts, for Stacks::set_names.
struct NamedFunction {
  std::string_view name;
  std::string_view file;
  std::uint32_t line = 0;
};

/// Sizes of the append-only tables.
struct StackCounts {
  std::uint32_t modules = 0;
  std::uint32_t frames = 0;
  std::uint32_t nodes = 0;
  std::uint32_t unmappings = 0;
  bool operator==(const StackCounts&) const = default;
};

/// The stacks of one journal. Interning is expected O(1) and asks for memory only when a table grows. One thread at a
/// time; const members may run concurrently. Members that are given an index that does not exist throw Error.
class Stacks {
 public:
  Stacks();
  Stacks(Stacks&&) = default;
  Stacks& operator=(Stacks&&) = default;
  Stacks(const Stacks&) = delete;
  Stacks& operator=(const Stacks&) = delete;

  /// Always a new module: the same file may be mapped twice. A path beyond most_text_bytes is cut.
  std::uint32_t add_module(Module module);
  /// The module goes at this time.
  void set_unmapped(std::uint32_t module, std::uint64_t unmapped_ns);
  /// `module` may be no_module or end_marker.
  std::uint32_t intern_frame(std::uint32_t module, std::uint64_t address);
  std::uint32_t intern_frame(StackEnd reason) { return intern_frame(end_marker, static_cast<std::uint64_t>(reason)); }
  /// `parent` is no_node for a root. An end marker can only be a root.
  std::uint32_t intern_node(std::uint32_t parent, std::uint32_t frame);
  /// The same for a node that is known not to be there, without the search.
  std::uint32_t add_node(std::uint32_t parent, std::uint32_t frame);
  /// The frame's functions, from the innermost inlined one to the one that the machine called. Replaces earlier names.
  /// Texts beyond most_text_bytes are cut.
  void set_names(std::uint32_t frame, std::span<const NamedFunction> functions);
  void clear_names();

  StackCounts counts() const;
  bool empty() const { return counts() == StackCounts{}; }
  std::span<const Module> modules() const { return modules_; }
  std::span<const Frame> frames() const { return frames_; }
  std::span<const Node> nodes() const { return nodes_; }
  /// Modules in the order in which set_unmapped() named them.
  std::span<const std::uint32_t> unmappings() const { return unmappings_; }
  /// Empty when the frame's names were not resolved. Valid until names change.
  std::span<const Function> names(std::uint32_t frame) const;
  /// Whether more is known of the frame than where its function begins.
  bool is_named(std::uint32_t frame) const;
  bool has_names() const { return named_frames_ != 0; }
  /// How many frames are named.
  std::uint32_t named_frames() const { return named_frames_; }
  /// Whether names() has something to say of any frame.
  bool has_functions() const { return !functions_.empty(); }
  /// The text of an index in Function; text 0 is empty. Any bytes, not necessarily UTF-8.
  const std::string& text(std::uint32_t index) const { return texts_[index]; }
  std::uint32_t texts() const { return static_cast<std::uint32_t>(texts_.size()); }

  /// The invariants: every index names something that exists, parents precede children, nothing is there twice, end
  /// markers are roots, modules have a range. O(tables). Throws Error that names the first violation.
  void check() const;

  /// A text line holds any of them.
  static constexpr std::size_t most_text_bytes = 65'535;

 private:
  struct FrameHash {
    std::size_t operator()(const Frame& frame) const {
      constexpr std::uint64_t mix = 0x9E37'79B9'7F4A'7C15U;
      return static_cast<std::size_t>(((frame.address ^ (std::uint64_t{frame.module} << 40)) * mix) >> 16);
    }
  };
  struct FrameSame {
    bool operator()(const Frame& a, const Frame& b) const { return a.module == b.module && a.address == b.address; }
  };
  struct Names {
    std::uint32_t first = 0;
    std::uint32_t count = 0;
  };
  std::uint32_t intern_text(std::string_view text);

  std::vector<Module> modules_;
  std::vector<Frame> frames_;
  std::vector<Node> nodes_;
  std::vector<std::uint32_t> unmappings_;
  std::unordered_map<Frame, std::uint32_t, FrameHash, FrameSame> frame_index_;
  FlatMap<std::uint32_t> node_index_;
  std::uint32_t indexed_nodes_ = 0;  ///< those before it are in the index
  std::vector<Names> names_;         ///< by frame; shorter than frames_ when the last have none
  std::vector<Function> functions_;
  std::uint32_t named_frames_ = 0;
  std::deque<std::string> texts_;  ///< a deque, because the index below refers to its elements
  std::unordered_map<std::string_view, std::uint32_t> text_index_;
};

}  // namespace blockyard::journal
