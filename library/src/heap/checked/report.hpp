// What the checked heap says before it ends the program.
#pragma once

#include <cstddef>
#include <cstdint>

namespace blockyard::heap::checked {

struct Record;

/// Says `what` was done wrong with `pointer`, the stack that did it, and what `record` (may be null) knows of its
/// block: size, where it was allocated, and where it was freed. Aborts. Call it without a lock of the heap.
[[noreturn]] void report(const char* what, const void* pointer, const Record* record);

}  // namespace blockyard::heap::checked
