/// FMOD on Blockyard's heap. Include FMOD's header first; before the first system is made:
///
///   if (by_fmod_install() != FMOD_OK) ...
///
/// Blocks have the tag "fmod", and streams' "fmod/stream", below the tags of the thread.
#ifndef BLOCKYARD_FMOD_H
#define BLOCKYARD_FMOD_H

#include "blockyard/heap.h"
#include "blockyard/tag.h"

static inline void by_fmod_tag(FMOD_MEMORY_TYPE type) {
  const FMOD_MEMORY_TYPE stream = FMOD_MEMORY_STREAM_FILE | FMOD_MEMORY_STREAM_DECODE;
  by_tag_push((type & stream) != 0 ? "fmod/stream" : "fmod");
}
static inline void* F_CALL by_fmod_alloc(unsigned int size, FMOD_MEMORY_TYPE type, const char* source) {
  (void)source;
  by_fmod_tag(type);
  void* const given = by_malloc(size);
  by_tag_pop();
  return given;
}
static inline void* F_CALL by_fmod_realloc(void* block, unsigned int size, FMOD_MEMORY_TYPE type, const char* source) {
  (void)source;
  by_fmod_tag(type);
  void* const given = by_realloc(block, size);
  by_tag_pop();
  return given;
}
static inline void F_CALL by_fmod_free(void* block, FMOD_MEMORY_TYPE type, const char* source) {
  (void)source;
  by_fmod_tag(type);
  by_free(block);
  by_tag_pop();
}

static inline FMOD_RESULT by_fmod_install(void) {
  return FMOD_Memory_Initialize(NULL, 0, by_fmod_alloc, by_fmod_realloc, by_fmod_free, FMOD_MEMORY_ALL);
}

#endif
