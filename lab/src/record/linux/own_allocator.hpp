// Records an allocator that stands in front of the hooks: one that the program exports, or that is linked into it under
// names of its own.
#pragma once

#include <cstddef>
#include <span>

#include "record/linux/imports.hpp"

namespace blockyard::record {

/// Looks for such an allocator and makes its calls go through hooks. Writes the file name of what has it into `name`:
/// "." is the program itself; empty is none. False where there is one and its calls could not be changed. Once, before
/// the program has threads.
bool hook_own_allocator(char (&name)[64]);

/// Of a library that was loaded into a running program, and so stands behind all others: makes what the program's
/// objects import reach the hooks. Other threads may run. Names an allocator that the program exports as
/// hook_own_allocator() does. The program's libblockyard, if any, learns of us.
/// Returns how many imports were changed.
std::size_t hook_running_program(char (&own)[64]);
/// Gives every import back what it had.
void unhook_running_program();

/// Of such a program: the changes of code that make the calls of an allocator that is linked into it go through hooks.
/// They stay the same, and so do their places. Until somebody makes them, with all threads stopped, nothing is changed.
std::span<const CodeChange> plan_own_of_running();

/// Whether hook_own_allocator() has found one and changed its calls.
bool own_allocator_is_hooked();

/// Objects may have been loaded since: their imports reach the hooks as well, also where RTLD_DEEPBIND made them reach
/// what is behind. Cheap where none was.
void hook_new_objects();
/// Objects have been unloaded.
void forget_objects();

/// While a thread looks at the loaded objects, it holds a lock of the loader's, which a child forked meanwhile would
/// find taken forever. So forks wait for this lock, and who looks has it.
class ObjectsLock {
 public:
  ObjectsLock() : was_free_(take()) {}
  ~ObjectsLock() {
    if (was_free_) give_back();
  }
  ObjectsLock(const ObjectsLock&) = delete;
  ObjectsLock& operator=(const ObjectsLock&) = delete;

  /// False where this thread has it already.
  static bool take();
  /// False where any thread has it.
  static bool take_if_free();
  static void give_back();

 private:
  bool was_free_;
};

}  // namespace blockyard::record
