// The rows of syscalls.npy, as they come in.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace blockyard::replay {

/// A system call that one thread made once or more at one event. 24 bytes, the layout of docs/reference/campaign-folder.md.
struct SyscallRow {
  std::uint32_t event;
  std::uint16_t thread;
  std::uint16_t call;  ///< the system call's number on this machine
  std::uint32_t errors;
  std::uint32_t count;
  std::uint64_t ns;  ///< all of them together, the tracer's stops included
};
static_assert(sizeof(SyscallRow) == 24);

/// Not a thread of the journal: one that the allocator started.
inline constexpr std::uint16_t background_thread = 0xffff;

/// Rows with the same event, thread and call become one; ordered by these.
std::vector<SyscallRow> merged(std::vector<SyscallRow> rows);

/// Writes `folder`/syscalls.npy. Throws journal::Error.
void write_syscalls(const std::string& folder, const std::vector<SyscallRow>& rows);

}  // namespace blockyard::replay
