#include "heap/checked/report.hpp"

#include <unistd.h>

#include <cstdio>
#include <cstdlib>

#include "heap/checked/blocks.hpp"
#include "heap/checked/stacks.hpp"
#include "heap/fault.hpp"

namespace blockyard::heap::checked {

void report(const char* what, const void* pointer, const Record* record) {
  const std::uint32_t here = take_stack();
  const Record known = record == nullptr ? Record{} : *record;  // printing allocates
  char line[320];
  std::snprintf(line, sizeof line, "blockyard: %s: %p\n  by thread %d, at\n", what, pointer,
                static_cast<int>(gettid()));
  say(line);
  print_stack(here);
  if (record != nullptr) {
    std::snprintf(line, sizeof line, "  the block has %llu bytes; allocated by thread %u, at\n",
                  static_cast<unsigned long long>(known.size), known.allocated_by);
    say(line);
    print_stack(known.allocated_at);
    if (known.freed_by != 0) {
      std::snprintf(line, sizeof line, "  freed before by thread %u, at\n", known.freed_by);
      say(line);
      print_stack(known.freed_at);
    }
  }
  std::abort();
}

}  // namespace blockyard::heap::checked
