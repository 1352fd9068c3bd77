// The handshake with the collector.
#pragma once

#include "record/channel.hpp"

namespace blockyard::record {

/// A recording that was granted: the mapped region and what the collector decided.
struct Attachment {
  Welcome welcome;
  Region region;
};

/// Connects to the collector's abstract socket `name`; -1 on failure. System calls only.
int connect_to_collector(const char* name);
/// Says hello over `socket`, maps what comes back and closes the descriptors. False when refused or failed.
bool shake_hands(int socket, const Hello& hello, Attachment& attachment);
/// Tells the collector of a forked child that has no event yet; awaits no answer. System calls only.
void announce(const char* name, const Hello& hello);
/// Starts a collector of our own, in `folder`, at the other end of a socket; returns our end or -1.
int start_collector(const char* folder);

}  // namespace blockyard::record
