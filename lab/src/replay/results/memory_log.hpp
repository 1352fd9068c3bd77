// What a run leaves beside its samples: the rows of memory.npy, in the layout of docs/reference/campaign-folder.md.
#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace blockyard::replay {

/// A row of memory.npy.
struct MemoryRow {
  std::uint64_t time;               ///< ns of the replay's clock
  std::uint64_t resident;           ///< bytes of the process beyond the lab's own
  std::uint64_t live;               ///< bytes asked for and alive
  std::uint64_t blocks;             ///< live
  std::uint64_t minor_faults;       ///< of the process since the clock's start
  std::uint64_t cpu_ns;             ///< the same
  std::uint64_t background_cpu_ns;  ///< the same, of threads that the allocator started
};

/// Writes `folder`/memory.npy. Throws journal::Error when the disk is full.
void write_memory(const std::string& folder, std::span<const MemoryRow> rows);

}  // namespace blockyard::replay
