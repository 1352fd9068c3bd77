// What a run leaves beside its samples: the rows of memory.npy, in the layout of docs/reference/campaign-folder.md.
#pragma once

#include <span>
#include <string>

#include "replay/watch.hpp"

namespace blockyard::replay {

/// Writes `folder`/memory.npy. Throws journal::Error when the disk is full.
void write_memory(const std::string& folder, std::span<const MemoryRow> rows);

}  // namespace blockyard::replay
