// The process and its calling thread, as the system knows them. Nothing here allocates; all keep errno.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

namespace blockyard::base {

/// The process's number, as the system has it: that of a vfork child is its own. A system call.
int process_id();
/// Whether the process with that number has this one's memory, as a vfork child's parent does; false where the system
/// does not say. Two system calls.
bool shares_memory_with(int id);

/// The calling thread's number, as debuggers show it. A system call.
int thread_id();
/// Whether no thread of the process has that number any longer. Two system calls.
bool thread_has_ended(int id);

/// Threads of the process that the system counts; 0 where it does not say. Async-signal-safe.
unsigned threads_of_process();

/// The value of an environment variable; nullptr: there is none.
const char* environment(const char* name);
/// Likewise as a number, with an optional K, M or G behind it. None: there is none, or none from `least` to `most`,
/// which is said on standard error.
std::optional<std::uint64_t> read_number(const char* name, std::uint64_t least, std::uint64_t most);

/// Sixteen bytes that differ from process to process and that nobody can guess: the same in each call, and in forked
/// children. Zeros where the system gives none.
std::array<std::uint64_t, 2> random_words();

/// Calls `report` with the address of an access to memory of the process that its protection forbids, where `is_ours`
/// says so of the address: on the thread that did it, in the midst of the access. `report` does not return. Every other
/// fault goes on to who was asked before. Once a process, when the C library is ready.
void report_forbidden_accesses(bool (*is_ours)(const void* address), void (*report)(const void* address));

}  // namespace blockyard::base
