// Makes what loaded objects import reach the hooks: of a program that runs already, and of what is loaded later.
#pragma once

#include <cstddef>

#include "record/linux/hooks_own.hpp"
#include "record/linux/imports.hpp"

namespace blockyard::record {

/// What is redirected in all objects, in the order of the calls of redirect().
extern Redirection redirections[3 * function_count];
extern std::size_t redirection_count;
void redirect(void* from, void* to, const char* name);

/// Whether it is this library's.
bool is_ours(const dl_phdr_info& object);

/// The objects that are loaded now reach the hooks by the loader's rules.
void note_objects();

/// Of a library that was loaded into a running program, and so stands behind all others: makes what the program's
/// objects import reach the hooks. Other threads may run. Names an allocator that the program exports as
/// hook_own_allocator() does. The program's libblockyard, if any, learns of us.
/// Returns how many imports were changed.
std::size_t hook_running_program(char (&own)[64]);
/// Gives every import back what it had.
void unhook_running_program();

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
