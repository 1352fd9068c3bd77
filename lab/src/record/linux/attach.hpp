// The handshake with the collector.
#pragma once

#include "record/channel.hpp"

namespace blockyard::record {

/// A recording that was granted: what the collector decided, and the two pages of the region from which the rest is
/// mapped.
struct Attachment {
  Welcome welcome;
  Control* control;
  void* empty_page;
};

/// Connects to the collector's socket, by its path, else as an abstract name. Returns -1 on failure. Makes system calls
/// only.
int connect_to_collector(const char* name);
/// Introduces the program over `socket`, maps the two pages and closes the descriptors. Returns false when refused
/// or failed.
bool shake_hands(int socket, const Hello& hello, Attachment& attachment);
/// Tells the collector something and awaits no answer. Makes system calls only.
void tell(const char* name, const Hello& hello);
/// Starts a collector, which lies in `folder`, at the other end of a socket. Returns our end, or -1.
int start_collector(const char* folder);

}  // namespace blockyard::record
