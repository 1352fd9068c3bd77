/// ENet on Blockyard's heap, instead of enet_initialize():
///
///   if (by_enet_initialize() != 0) ...
///
/// Its blocks have the tag "enet" below the tags of the thread.
#ifndef BLOCKYARD_ENET_H
#define BLOCKYARD_ENET_H

#include <enet/enet.h>

#include "blockyard/heap.h"
#include "blockyard/tag.h"

static inline void* ENET_CALLBACK by_enet_malloc(size_t size) {
  by_tag_push("enet");
  void* const given = by_malloc(size);
  by_tag_pop();
  return given;
}
static inline void ENET_CALLBACK by_enet_free(void* block) {
  by_tag_push("enet");
  by_free(block);
  by_tag_pop();
}

/// As enet_initialize(). Where memory is exhausted, ENet ends the program, as it does without.
static inline int by_enet_initialize(void) {
  const ENetCallbacks callbacks = {by_enet_malloc, by_enet_free, NULL};
  return enet_initialize_with_callbacks(ENET_VERSION, &callbacks);
}

#endif
