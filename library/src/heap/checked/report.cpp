#include "heap/checked/report.hpp"

#include <cstdlib>

#include "base/process.hpp"
#include "heap/checked/blocks.hpp"
#include "heap/checked/stacks.hpp"
#include "heap/fault.hpp"

namespace blockyard::heap::checked {

void report(const char* what, const void* pointer, const Record* record) {
  const std::uint32_t here = take_stack();
  const Record known = record == nullptr ? Record{} : *record;  // printing allocates
  say("blockyard: %s: %p\n  by thread %d, at\n", what, pointer, base::thread_id());
  print_stack(here);
  if (record != nullptr) {
    say("  the block has %llu bytes; allocated by thread %u, at\n", static_cast<unsigned long long>(known.size),
        known.allocated_by);
    print_stack(known.allocated_at);
    if (known.freed_by != 0) {
      say("  freed before by thread %u, at\n", known.freed_by);
      print_stack(known.freed_at);
    }
  }
  std::abort();
}

}  // namespace blockyard::heap::checked
