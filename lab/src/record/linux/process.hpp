// Attaches this process to a recording, at its start, in a forked child or while it runs, and leaves it.
#pragma once

#include <cstdint>
#include <span>

#include "record/linux/imports.hpp"

namespace blockyard::record {

/// Decides whether the process is recorded: once per process image, and again in a forked child.
void decide();
/// Starts a recording of the C API's calls for a program without a recorder.
bool open_engine_recording();
/// Nothing more is recorded, and what is mapped stays.
void end_recording();
/// A collector that was killed leaves rings that nothing empties.
bool collector_is_gone(std::int32_t pid);

/// What plan_own_of_running() says. Calls may be changed from then on: nothing is recorded yet. Keeps errno.
std::span<const CodeChange> plan_for_running();
/// Begins to record a program that runs already, into the collector at this socket. `is_changed`: the code that was
/// planned. Returns nullptr, or why it could not: a sentence. Keeps errno.
const char* attach_to_running(const char* socket, bool is_changed);
/// The same of one whose hooks sleep.
const char* attach_to_awoken(const char* socket);
/// Ends that. Afterwards no hook is in place, no memory is shared, and no thread is inside the recorder; where one does
/// not leave it within a second, what it needs stays mapped.
void detach_from_running();

/// The folder of this library, where the collector is; "" when unknown. Valid for the process's life.
const char* own_folder();

}  // namespace blockyard::record
