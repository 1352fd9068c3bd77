// Records an allocator that stands in front of the hooks: one that the program exports, or that is linked into it under
// names of its own.
#pragma once

#include <cstddef>

namespace blockyard::record {

/// Looks for such an allocator and makes its calls go through hooks. Writes the file name of what has it into `name`:
/// "." is the program itself; empty is none. False where there is one and its calls could not be changed. Once, before
/// the program has threads.
bool hook_own_allocator(char (&name)[64]);

/// Objects may have been loaded since: their imports reach the hooks as well, also where RTLD_DEEPBIND made them reach
/// what is behind. Cheap where none was.
void hook_new_objects();
/// Objects have been unloaded.
void forget_objects();

}  // namespace blockyard::record
