// Says what was touched when a program runs into a guard page or a freed guarded block.
#pragma once

namespace blockyard::heap::checked {

/// Installs a handler for SIGSEGV. A program that installs its own later has its own; a fault elsewhere goes to
/// whatever was there before.
void start_trap();

}  // namespace blockyard::heap::checked
