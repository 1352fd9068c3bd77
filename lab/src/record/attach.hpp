// The handshake with the collector.
#pragma once

#include "record/channel.hpp"

namespace blockyard::record {

/// A recording that was granted: the mapped region and what the collector decided.
struct Attachment {
  Welcome welcome;
  Region region;
};

/// Connects to the collector's abstract socket `name`. Returns -1 on failure. Makes system calls only.
int connect_to_collector(const char* name);
/// Introduces the program over `socket`, maps the region it gets and closes the descriptors. Returns false when refused
/// or failed.
bool shake_hands(int socket, const Hello& hello, Attachment& attachment);
/// Announces a forked child that has no event yet to the collector, and awaits no answer. Makes system calls only.
void announce(const char* name, const Hello& hello);
/// Starts a collector, which lies in `folder`, at the other end of a socket. Returns our end, or -1.
int start_collector(const char* folder);

}  // namespace blockyard::record
