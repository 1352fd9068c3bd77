/// SDL 2 or 3 on Blockyard's heap. Include it after SDL's own header, and before the first other call of SDL:
///
///   by_sdl_install();
///
/// SDL's blocks have the tag "sdl" below the tags of the thread.
#ifndef BLOCKYARD_SDL_H
#define BLOCKYARD_SDL_H

#include "blockyard/heap.h"
#include "blockyard/tag.h"

static inline void* SDLCALL by_sdl_malloc(size_t size) {
  by_tag_push("sdl");
  void* const given = by_malloc(size);
  by_tag_pop();
  return given;
}
static inline void* SDLCALL by_sdl_calloc(size_t count, size_t size) {
  by_tag_push("sdl");
  void* const given = by_calloc(count, size);
  by_tag_pop();
  return given;
}
static inline void* SDLCALL by_sdl_realloc(void* block, size_t size) {
  by_tag_push("sdl");
  void* const given = by_realloc(block, size);
  by_tag_pop();
  return given;
}
static inline void SDLCALL by_sdl_free(void* block) {
  by_tag_push("sdl");
  by_free(block);
  by_tag_pop();
}

/// 0, or -1 where SDL has allocated already: such a block would be freed on the wrong heap. Most builds of SDL 3 don't
/// count their blocks.
static inline int by_sdl_install(void) {
  if (SDL_GetNumAllocations() > 0) return -1;
  const int said = SDL_SetMemoryFunctions(by_sdl_malloc, by_sdl_calloc, by_sdl_realloc, by_sdl_free);
  return SDL_MAJOR_VERSION >= 3 ? said - 1 : said;  // 3 says 1 or 0, 2 says 0 or -1
}

#endif
