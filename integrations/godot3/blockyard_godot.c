// A GDNative library for Godot 3: a project that loads it has its frames in a recording, and gets phases and tags. The
// engine stays as it is. Without a recorder each call is a load and a branch.
//
//   cc -shared -fPIC -O2 blockyard_godot.c -o libblockyard_godot.so
//
// project/ has the three files that a project needs: blockyard.gdnlib, blockyard.gdns, and the autoload in
// project.godot. Scripts then call Blockyard.phase("level 1"), Blockyard.tag("ai") and Blockyard.untag().
//
// GDNative's C interface 1.0, which every Godot 3 has, is declared here as far as it is used, a third of this file, as
// packages of the engine have no headers: its table of functions begins 40 bytes into the structure, and the numbers
// count from there (modules/gdnative/gdnative_api.json).
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "blockyard/frame.h"
#include "blockyard/tag.h"

// Only a recorder has them.
BY_API BY_WEAK void by_frame_mark(void);
BY_API BY_WEAK void by_phase_mark(const char* name);

#define EXPORTED __attribute__((visibility("default")))

typedef struct variant {
  uint64_t words[3];
} variant;  // all zeros are null
typedef struct string {
  void* data;
} string;
typedef void (*any_function)(void);
typedef variant method(void* object, void* data, void* user, int count, variant** arguments);

typedef struct core_api {
  uint32_t type, version[2];
  const void* next;
  uint32_t extension_count;
  const void** extensions;
  any_function functions[744];
} core_api;
enum {
  char_string_data = 572,
  char_string_destroy = 573,
  variant_as_string = 541,
  string_utf8 = 678,
  string_destroy = 721
};

typedef struct callback {  // its pointer, and what it is given
  any_function call;
  void* data;
  void (*free_data)(void*);
} callback;
typedef struct nativescript_api {
  uint32_t type, version[2];
  const void* next;
  void (*register_class)(void* handle, const char* name, const char* base, callback create, callback destroy);
  any_function register_tool_class;
  void (*register_method)(void* handle, const char* class_name, const char* name, int rpc_mode, callback method);
} nativescript_api;
enum { nativescript = 1 };  // the number of this extension

typedef struct init_options {
  bool in_editor;
  uint64_t hashes[3];
  any_function report[2];
  void* library;
  const core_api* api;
} init_options;

static const core_api* api;
static const nativescript_api* scripts;

#define CORE(number, result, ...) ((result(*)(__VA_ARGS__))api->functions[number])

// Calls `use` with the first argument as UTF-8.
static variant with_text(int count, variant** arguments, void (*use)(const char*)) {
  const variant null = {{0, 0, 0}};
  if (count < 1) return null;
  string text = CORE(variant_as_string, string, const variant*)(arguments[0]);
  string bytes = CORE(string_utf8, string, const string*)(&text);
  use(CORE(char_string_data, const char*, const string*)(&bytes));
  CORE(char_string_destroy, void, string*)(&bytes);
  CORE(string_destroy, void, string*)(&text);
  return null;
}

static void begin_phase(const char* name) {
  if (by_phase_mark) by_phase_mark(name);
}

// A tag's name must stay: each different one is kept once. Scripts call from one thread at a time, or lock.
static void begin_tag(const char* name) {
  static struct kept {
    struct kept* next;
    char name[];
  }* first = NULL;
  if (!by_recorder_tag_push) return;
  struct kept* one = first;
  while (one != NULL && strcmp(one->name, name) != 0) one = one->next;
  if (one == NULL) {
    one = malloc(sizeof *one + strlen(name) + 1);
    if (one == NULL) return;
    strcpy(one->name, name);
    one->next = first;
    first = one;
  }
  by_tag_push(one->name);
}

static variant phase(void* object, void* data, void* user, int count, variant** arguments) {
  (void)object, (void)data, (void)user;
  return with_text(count, arguments, begin_phase);
}
static variant tag(void* object, void* data, void* user, int count, variant** arguments) {
  (void)object, (void)data, (void)user;
  return with_text(count, arguments, begin_tag);
}
static variant untag(void* object, void* data, void* user, int count, variant** arguments) {
  (void)object, (void)data, (void)user, (void)count, (void)arguments;
  by_tag_pop();
  return (variant){{0, 0, 0}};
}

static void* create(void* object, void* data) {
  (void)object, (void)data;
  return NULL;
}
static void destroy(void* object, void* data, void* user) { (void)object, (void)data, (void)user; }

EXPORTED void blockyard_gdnative_init(init_options* options) {
  api = options->api;
  for (uint32_t i = 0; i < api->extension_count; ++i) {
    const nativescript_api* const extension = api->extensions[i];
    if (extension->type == nativescript) scripts = extension;
  }
}
EXPORTED void blockyard_gdnative_terminate(void* options) { (void)options; }

EXPORTED void blockyard_nativescript_init(void* handle) {
  if (scripts == NULL) return;
  const callback make = {(any_function)create, NULL, NULL};
  const callback end = {(any_function)destroy, NULL, NULL};
  scripts->register_class(handle, "Blockyard", "Node", make, end);
  scripts->register_method(handle, "Blockyard", "phase", 0, (callback){(any_function)phase, NULL, NULL});
  scripts->register_method(handle, "Blockyard", "tag", 0, (callback){(any_function)tag, NULL, NULL});
  scripts->register_method(handle, "Blockyard", "untag", 0, (callback){(any_function)untag, NULL, NULL});
}

// The engine calls it once per frame.
EXPORTED void blockyard_nativescript_frame(void) {
  if (by_frame_mark) by_frame_mark();
}
