/// SDL 3 on Blockyard's heap. Before the first other call of SDL:
///
///   by_sdl3_install();
///
/// SDL's blocks have the tag "sdl" below the tags of the thread.
#ifndef BLOCKYARD_SDL3_H
#define BLOCKYARD_SDL3_H

#include <SDL3/SDL_stdinc.h>

#include "blockyard/heap.h"
#include "blockyard/tag.h"

static inline void* SDLCALL by_sdl3_malloc(size_t size) {
  by_tag_push("sdl");
  void* const given = by_malloc(size);
  by_tag_pop();
  return given;
}
static inline void* SDLCALL by_sdl3_calloc(size_t count, size_t size) {
  by_tag_push("sdl");
  void* const given = by_calloc(count, size);
  by_tag_pop();
  return given;
}
static inline void* SDLCALL by_sdl3_realloc(void* block, size_t size) {
  by_tag_push("sdl");
  void* const given = by_realloc(block, size);
  by_tag_pop();
  return given;
}
static inline void SDLCALL by_sdl3_free(void* block) {
  by_tag_push("sdl");
  by_free(block);
  by_tag_pop();
}

/// SDL can't say whether it has allocated already: such a block would be freed on the wrong heap.
static inline bool by_sdl3_install(void) {
  return SDL_SetMemoryFunctions(by_sdl3_malloc, by_sdl3_calloc, by_sdl3_realloc, by_sdl3_free);
}

#endif
