// What the C API of journal.h hands on in a Windows program: records in a ring, and a thread that makes a journal of
// them.
//
// The program's threads append records (record/channel.hpp) with the addresses of their stacks, under one lock and so
// in the order of their stamps. The writer's thread takes them out, numbers the stacks, and gives them to the
// interpreter that the collector on Linux has.
#pragma once

#include <cstddef>
#include <cstdint>

#include "record/channel.hpp"

namespace blockyard::record {

/// The return addresses of a stack, innermost first.
struct Stack {
  static constexpr std::uint32_t most = 62;  ///< what all versions of the system can walk
  void* addresses[most];
  std::uint32_t count = 0;
};

/// Starts the writer's thread, once a process. False when the system refuses.
bool start_writer();
/// Whether it was started: before that, nothing is to be recorded.
bool is_started();
/// Whether the calling thread is the writer's own: what it allocates is not recorded.
bool is_writer();

/// Appends an event with its stack, or none. With a second record, nothing of another thread comes between them. Waits
/// while the ring is full, and drops the event where the writer has ended.
void append(const std::uint64_t* record, const Stack* stack = nullptr, const std::uint64_t* second = nullptr);
/// A record that ends with a text, of which at most max_text_bytes are kept.
void append_text(RecordKind kind, const char* text, bool engine);

/// The marks of frame.h.
void mark_frame();
void mark_phase(const char* name);

/// How many journals are complete, and whether the last one is whole.
std::uint32_t closed_journals();
bool last_is_whole();
/// Waits until more than `before` are complete. False where the writer ended before.
bool wait_for_close(std::uint32_t before);
/// What was appended is given to the system: on the calling thread, where the writer was ended in the midst of nothing.
/// Waits for ten seconds at most.
void write_now();

}  // namespace blockyard::record
