// The socket at which programs introduce themselves, and the two messages that go over it (channel.hpp).
#pragma once

#include <optional>
#include <string>

#include <sys/types.h>

#include "record/channel.hpp"
#include "record/linux/collect/file_descriptor.hpp"

namespace blockyard::record {

/// Listens at a path, or at an abstract name. Throws journal::Error.
FileDescriptor listen_at(const std::string& name, bool is_abstract);

/// The next program that waits at `listener`; none when there are no more. Does not block.
FileDescriptor accept_program(const FileDescriptor& listener);

/// The program at the other end of a connection.
struct Caller {
  Hello hello;
  pid_t pid = 0;         ///< as this process sees it
  FileDescriptor pidfd;  ///< closed when the process has ended already
};

/// Reads the program's message; waits for it for a second. None for another user's program, which a line on standard
/// error says, and for another version.
std::optional<Caller> identify(const FileDescriptor& connection);

/// Answers; `file` goes along unless it is negative. False when the program is gone.
bool send_welcome(const FileDescriptor& connection, const Welcome& welcome, int file);

}  // namespace blockyard::record
