#include "heap/bound.hpp"

#if BLOCKYARD_BOUNDS

#include <cstdio>

#include "heap/fault.hpp"

namespace blockyard::heap {

constinit std::atomic<Loop> planted_turn{Loop::count};

const char* name_of(Loop loop) {
  switch (loop) {
    case Loop::lists_adopted:
      return "lists of remote frees adopted";
    case Loop::blocks_trimmed:
      return "cached blocks trimmed";
    case Loop::magazines_drained:
      return "magazines drained";
    case Loop::places_mended:
      return "places of a ring mended in a forked child";
    case Loop::runs_in_work:
      return "runs in work given up in a forked child";
    case Loop::pages_populated:
      return "pages populated at once";
    case Loop::table_pages:
      return "pages of a table populated";
    case Loop::lists_for_purge:
      return "lists searched for what to purge";
    case Loop::chunks_given_back:
      return "chunks given back at once";
    case Loop::blocks_flushed:
      return "cached blocks of a parked heap flushed";
    case Loop::slabs_flushed:
      return "empty slabs of a parked heap given back";
    case Loop::blocks_of_arena:
      return "blocks of whole pages of an arena destroyed";
    case Loop::slabs_of_arena:
      return "slabs of an arena destroyed";
    case Loop::count:
      break;
  }
  return "none";
}

void report_turns(Loop loop) {
  char text[160];
  std::snprintf(text, sizeof text, "more turns of a loop than stated: %s", name_of(loop));
  report_broken(text);
}

}  // namespace blockyard::heap

#endif
