// A GDExtension for Godot 4.5 and later: a project that has it has its frames in a recording. A shape: written by the
// published interface and tried with a host of ours, since the engine cannot be had here.
//
//   cc -shared -fPIC -O2 blockyard_godot4.c -o libblockyard_godot4.so
//
// The project's blockyard.gdextension names it:
//
//   [configuration]
//   entry_symbol = "blockyard_gdextension"
//   compatibility_minimum = "4.5"
//   [libraries]
//   linux.x86_64 = "res://libblockyard_godot4.so"
//
// An engine that is built for Tracy marks frames, zones and memory by itself (integrations/tracy).
#include <stddef.h>
#include <stdint.h>

#include "blockyard/frame.h"

BY_API BY_WEAK void by_frame_mark(void);  // only a recorder has it

typedef void (*any_function)(void);
typedef any_function (*get_function)(const char* name);
typedef struct main_loop_callbacks {
  void (*startup)(void);
  void (*shutdown)(void);
  void (*frame)(void);
} main_loop_callbacks;
typedef void (*register_callbacks)(void* library, const main_loop_callbacks* callbacks);
typedef struct initialization {
  int minimum_level;  // 2: scene
  void* user;
  void (*initialize)(void* user, int level);
  void (*deinitialize)(void* user, int level);
} initialization;

static void end_frame(void) {
  if (by_frame_mark) by_frame_mark();
}
static void at_level(void* user, int level) { (void)user, (void)level; }

__attribute__((visibility("default"))) uint8_t blockyard_gdextension(get_function get, void* library,
                                                                     initialization* result) {
  *result = (initialization){2, NULL, at_level, at_level};
  const register_callbacks add = (register_callbacks)get("register_main_loop_callbacks");
  if (add == NULL) return 0;  // an engine before 4.5
  const main_loop_callbacks callbacks = {NULL, NULL, end_frame};
  add(library, &callbacks);
  return 1;
}
