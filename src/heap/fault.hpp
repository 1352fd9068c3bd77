// What happens when a program breaks malloc's contract in a way that the heap notices.
#pragma once

namespace blockyard::heap {

/// Says what was wrong with `pointer` on standard error and aborts. Allocates nothing.
[[noreturn]] void report_fault(const char* what, const void* pointer);

}  // namespace blockyard::heap
