// What the kernel says about a process, its threads and the machine.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <sys/types.h>

namespace blockyard::record {

/// Each returns "" or nothing when the process is gone or may not be read.
std::string program_of(pid_t pid);
std::vector<std::string> command_of(pid_t pid);
std::string thread_name(pid_t pid, std::uint64_t tid);
bool thread_exists(pid_t pid, std::uint64_t tid);

/// Whole seconds since the process was started.
std::optional<std::uint64_t> age_seconds(pid_t pid);

/// CPU, kernel and distribution, in one line.
std::string machine_line();
std::uint64_t physical_memory_bytes();

}  // namespace blockyard::record
