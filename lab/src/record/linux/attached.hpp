// What is shared with blockyard-attach, which calls the two functions below in a program that runs already.
#pragma once

#include <cstdint>

namespace blockyard::record {

/// What the last call came to. The attaching process reads it in the program's memory.
struct AttachReport {
  std::uint32_t calls;         ///< that have ended
  std::uint32_t failed;        ///< 1: `text` says why
  char text[248];              ///< a sentence without its stop; ends with NUL
  std::uint64_t changes;       ///< by_plan(): where the CodeChanges lie
  std::uint64_t change_count;  ///< of these
  std::uint64_t is_changed;    ///< 1: the attaching process has made them
};

}  // namespace blockyard::record

extern "C" {
/// Finds which code calls an allocator that is linked into the program. Called as by_attach() is, and before it.
void by_plan();
/// Begins to record the program into the collector at this socket. Called by a thread that holds no lock of the
/// loader's or of malloc's, with all signals blocked.
void by_attach(const char* socket);
/// Ends it.
void by_detach();
extern blockyard::record::AttachReport by_attach_report;
}
