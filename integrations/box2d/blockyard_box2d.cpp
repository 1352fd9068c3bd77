/// Box2D 2.4 on Blockyard's heap: compile this file into the program. It takes the place of the two functions through
/// which Box2D allocates, also in a shared libbox2d, so nothing is to be called.
///
/// Its blocks have the tag "box2d" below the tags of the thread.
#include <cstddef>

#include <box2d/b2_settings.h>

#include "blockyard/heap.h"
#include "blockyard/tag.hpp"

/// A shared libbox2d finds what the program exports first.
__attribute__((visibility("default"))) void* b2Alloc_Default(int32 size) {
  const blockyard::tag box2d("box2d");
  return by_malloc(static_cast<std::size_t>(size));
}

__attribute__((visibility("default"))) void b2Free_Default(void* block) {
  const blockyard::tag box2d("box2d");
  by_free(block);
}
