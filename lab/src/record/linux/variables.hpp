#pragma once

namespace blockyard::record {

/// The variables of channel.hpp as this program was started with them; "" where they are not set. A forked child keeps
/// them.
struct Variables {
  bool are_read;
  char socket[108];  ///< also of a program that ran before it was recorded
  char frame_symbol[256];
  char preloaded[2048];
  char watched_limits[1 << 16];
  char asleep_folder[256];
};
extern Variables variables;

void read_environment();

/// Each valid for the process's life.
const char* collector_socket();
const char* preloaded_libraries();

}  // namespace blockyard::record
