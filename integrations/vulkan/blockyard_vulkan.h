/// Vulkan's host memory on Blockyard's heap: pass by_vulkan_callbacks() wherever a function of Vulkan takes a
/// `pAllocator`, the same when the object is made and when it is destroyed.
///
/// Blocks have the tags "vulkan/command", "vulkan/object", "vulkan/cache", "vulkan/device" or "vulkan/instance", by how
/// long they live, below the tags of the thread. What a driver's compiler takes past the callbacks has none.
#ifndef BLOCKYARD_VULKAN_H
#define BLOCKYARD_VULKAN_H

#include <string.h>

#include <vulkan/vulkan.h>

#include "blockyard/heap.h"
#include "blockyard/tag.h"

static inline void by_vulkan_tag(VkSystemAllocationScope scope) {
  static const char* const names[] = {"vulkan/command", "vulkan/object", "vulkan/cache", "vulkan/device",
                                      "vulkan/instance"};
  by_tag_push((unsigned)scope < sizeof names / sizeof names[0] ? names[scope] : "vulkan");
}

static VKAPI_ATTR void* VKAPI_CALL by_vulkan_alloc(void* user, size_t size, size_t alignment,
                                                   VkSystemAllocationScope scope) {
  (void)user;
  by_vulkan_tag(scope);
  void* const given = size == 0 ? NULL : by_aligned_alloc(alignment, size);
  by_tag_pop();
  return given;
}

static VKAPI_ATTR void VKAPI_CALL by_vulkan_free(void* user, void* block) {
  (void)user;
  by_tag_push("vulkan");
  by_free(block);
  by_tag_pop();
}

static VKAPI_ATTR void* VKAPI_CALL by_vulkan_realloc(void* user, void* block, size_t size, size_t alignment,
                                                     VkSystemAllocationScope scope) {
  void* const given = by_vulkan_alloc(user, size, alignment, scope);  // by_realloc would keep an alignment of 16 alone
  if (block != NULL && given != NULL) {
    const size_t held = by_usable_size(block);
    memcpy(given, block, held < size ? held : size);
  }
  if (given != NULL || size == 0) by_vulkan_free(user, block);
  return given;
}

static inline const VkAllocationCallbacks* by_vulkan_callbacks(void) {
  static const VkAllocationCallbacks callbacks = {NULL, by_vulkan_alloc, by_vulkan_realloc, by_vulkan_free, NULL, NULL};
  return &callbacks;
}

#endif
