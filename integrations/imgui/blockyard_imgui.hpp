/// Dear ImGui on Blockyard's heap. Before ImGui::CreateContext(), in each module that has an ImGui of its own:
///
///   blockyard::imgui_install();
///
/// Its blocks have the tag "imgui" below the tags of the thread.
#ifndef BLOCKYARD_IMGUI_HPP
#define BLOCKYARD_IMGUI_HPP

#include <cstddef>

#include <imgui.h>

#include "blockyard/heap.h"
#include "blockyard/tag.hpp"

namespace blockyard {

inline void imgui_install() {
  ImGui::SetAllocatorFunctions(
      [](std::size_t size, void*) {
        const tag imgui("imgui");
        return by_malloc(size);
      },
      [](void* block, void*) {
        const tag imgui("imgui");
        by_free(block);
      });
}

}  // namespace blockyard
#endif
