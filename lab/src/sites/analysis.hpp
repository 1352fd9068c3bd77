// Who allocates: events of a journal added up by site. A site is the stack of an allocation, grouped as the user asks.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "journal/event.hpp"
#include "journal/facts.hpp"
#include "journal/progress.hpp"
#include "journal/reader.hpp"
#include "journal/stacks.hpp"
#include "sites/labels.hpp"

namespace blockyard::sites {

/// What makes two allocations one site.
enum class By { function, line, module, tag, stack };

struct Options {
  By by = By::function;
  bool show_wrappers = false;  ///< operator new, malloc and the standard library may speak for a stack
  std::string skip;            ///< a regular expression: such functions don't speak for a stack, either; empty is none
  std::string through;         ///< a regular expression: only stacks with such a function; empty is all
  std::uint64_t from_ns = 0;
  std::uint64_t to_ns = std::numeric_limits<std::uint64_t>::max();
};

/// What a site did between `from` and `to`. A reallocation ends a block and gives another. The preamble's blocks count
/// as memory held, and as nothing else.
struct Totals {
  std::uint64_t allocations = 0;
  std::uint64_t bytes = 0;              ///< requested
  std::uint64_t frame_allocations = 0;  ///< within frames, by the thread that marks them
  std::uint64_t frame_bytes = 0;
  std::uint64_t worst_frame = 0;  ///< most allocations in one frame
  std::uint64_t frames = 0;       ///< frames with an allocation
  std::uint64_t peak_blocks = 0;  ///< alive when the program held most
  std::uint64_t peak_bytes = 0;
  std::uint64_t end_blocks = 0;  ///< alive at the end
  std::uint64_t end_bytes = 0;
  std::uint64_t freed = 0;             ///< blocks allocated and ended between `from` and `to`
  std::uint64_t freed_same_frame = 0;  ///< of them: in the frame that they were allocated in
  std::uint64_t freed_shared = 0;      ///< of them: within the function `shared`
  std::string shared;  ///< the function in which most of them lived: on both stacks, of allocation and free
};

struct Site {
  std::uint32_t node = journal::no_node;  ///< By::stack: the stack; else one of the site's
  std::uint32_t label = 0;                ///< By::tag: the index of its name; else unused
  bool has_stack = false;                 ///< false: the events without a stack, or without a tag
  Totals totals;
};

struct Sites {
  std::unique_ptr<journal::Source> source;  ///< has the header and the stacks
  std::unique_ptr<Labels> labels;           ///< of the stacks
  std::vector<Site> sites;                  ///< in the order in which they appear
  Totals all;
  std::uint64_t duration_ns = 0;
  std::uint64_t frame_count = 0;  ///< whole frames between `from` and `to`
  bool marked_frames = false;     ///< false: frames are sixtieths of a second, of all threads
  std::uint64_t peak_at_ns = 0;
  std::uint64_t without_stack = 0;      ///< allocations
  std::uint64_t incomplete_stacks = 0;  ///< allocations whose stack could not be walked to its root

  const journal::Header& header() const { return source->header(); }
  const journal::Stacks& stacks() const { return source->stacks(); }
};

/// Reads the events once where the journal tells its stacks before them; else a pass before that collects the stacks.
/// Frames are those of the thread that marks most of them: where another thread marks the first one, there is one pass
/// more. Memory grows with the live blocks, the stacks and the sites. Throws journal::Error; without stacks (or, by
/// tag, without tags) it says how to get them. `facts` takes the events by the way; a journal without stacks then has
/// no sites.
Sites find_sites(const std::string& path, const Options& options, const journal::Progress& progress,
                 journal::FactsGatherer* facts = nullptr);

}  // namespace blockyard::sites
