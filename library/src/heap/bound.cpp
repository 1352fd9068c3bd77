#include "heap/bound.hpp"

#if BLOCKYARD_BOUNDS

#include <unistd.h>

#include <cstdio>
#include <cstdlib>

#include "heap/fault.hpp"

namespace blockyard::heap {

constinit std::array<Turns, loop_count> turns_seen{};
constinit std::atomic<Loop> planted_turn{Loop::count};

namespace {

constexpr std::array<const char*, loop_count> names{
    "granules of a slab",
    "lists of remote frees adopted",
    "addresses copied to or from a magazine",
    "blocks at hand that are shed",
    "lines of a magazine asked for",
    "blocks of a magazine freed",
    "magazines drained",
    "places of a ring mended in a forked child",
    "looks at the page lock before parking",
    "runs in work given up in a forked child",
    "pages touched at once",
    "pages of a table populated",
    "blocks of whole pages of an own heap destroyed",
    "slabs of an own heap destroyed",
    "slabs cut at start",
    "chunks prefaulted",
    "runs trimmed",
    "lists looked at for purging",
    "chunks given back at once",
    "parked heaps swept in a round",
    "blocks at hand of a parked heap put back",
    "empty slabs of a parked heap given back",
    "surplus slabs dropped",
    "spare heaps made",
};
static_assert(names.back() != nullptr);

[[gnu::destructor]] void print_turns() {
  const char* const wanted = std::getenv("BLOCKYARD_HEAP_BOUNDS");
  if (wanted == nullptr || *wanted != '1') {
    return;
  }
  for (std::size_t loop = 0; loop < loop_count; ++loop) {
    const Turns& seen = turns_seen[loop];
    char line[200];
    const int length =
        std::snprintf(line, sizeof line, "blockyard: %s: at most %llu turns of %llu allowed there, %llu calls\n",
                      names[loop], static_cast<unsigned long long>(seen.most.load(std::memory_order_relaxed)),
                      static_cast<unsigned long long>(seen.allowed.load(std::memory_order_relaxed)),
                      static_cast<unsigned long long>(seen.calls.load(std::memory_order_relaxed)));
    const ssize_t written = write(STDERR_FILENO, line, static_cast<std::size_t>(length));
    static_cast<void>(written);
  }
}

}  // namespace

const char* name_of(Loop loop) { return names[static_cast<std::size_t>(loop)]; }

void report_turns(Loop loop) {
  char text[160];
  std::snprintf(text, sizeof text, "more turns of a loop than stated: %s", name_of(loop));
  report_broken(text);
}

}  // namespace blockyard::heap

#endif
