// The rows of syscalls.npy.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace blockyard::replay {

/// A system call that one thread made once or more at one event. 24 bytes, laid out as in
/// docs/reference/campaign-folder.md.
struct SyscallRow {
  std::uint32_t event;
  std::uint16_t thread;
  std::uint16_t call;  ///< the system call's number on this machine
  std::uint32_t errors;
  std::uint32_t count;
  std::uint64_t ns;  ///< of all of them together, including the tracer's stops
};
static_assert(sizeof(SyscallRow) == 24);

/// Stands for a thread that is not in the journal: the allocator started it.
inline constexpr std::uint16_t background_thread = 0xffff;

/// Joins rows with the same event, thread and call, and sorts by these.
std::vector<SyscallRow> merged(std::vector<SyscallRow> rows);

/// Writes `folder`/syscalls.npy. Throws journal::Error.
void write_syscalls(const std::string& folder, const std::vector<SyscallRow>& rows);

}  // namespace blockyard::replay
