// What an engine does with the extension: asks it for its callbacks, and calls them for five frames.
#include <stddef.h>
#include <stdint.h>
#include <string.h>

typedef void (*any_function)(void);
typedef struct main_loop_callbacks {
  any_function startup, shutdown, frame;
} main_loop_callbacks;
uint8_t blockyard_gdextension(any_function (*get)(const char*), void* library, void* result);

static main_loop_callbacks registered;
static void add(void* library, const main_loop_callbacks* callbacks) {
  if (library == &registered) registered = *callbacks;
}
static any_function get(const char* name) {
  return strcmp(name, "register_main_loop_callbacks") == 0 ? (any_function)add : NULL;
}

int main(void) {
  void* result[4];
  if (blockyard_gdextension(get, &registered, result) != 1) return 1;
  for (int frame = 0; frame < 5; ++frame) registered.frame();
  return 0;
}
