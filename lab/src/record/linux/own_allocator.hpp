// Records an allocator that stands in front of the hooks: one that the program exports, or that is linked into it under
// names of its own.
#pragma once

#include <span>

#include "record/linux/imports.hpp"

namespace blockyard::record {

/// Looks for such an allocator and makes its calls go through hooks. Writes the file name of what has it into `name`:
/// "." is the program itself; empty is none. False where there is one and its calls could not be changed. Once, before
/// the program has threads.
bool hook_own_allocator(char (&name)[64]);

/// Of a program that runs already: the changes of code that make the calls of an allocator that is linked into it go
/// through hooks. They stay the same, and so do their places. Until somebody makes them, with all threads stopped,
/// nothing is changed.
std::span<const CodeChange> plan_own_of_running();

/// Whether hook_own_allocator() has found one and changed its calls.
bool own_allocator_is_hooked();

}  // namespace blockyard::record
