// Frames of a game that sends 64 packets to its server over the loopback and gets them back: on ENet's own allocator,
// or with ENGINE_ON=blockyard on the heap.
#include <stdlib.h>

#include "enet/echo.h"

enum { frames = 600, packets = 64 };

int main(void) {
  if ((getenv("ENGINE_ON") != NULL ? by_enet_initialize() : enet_initialize()) != 0) return 1;
  const int came_back = echo(frames, packets, 1200);
  enet_deinitialize();
  return came_back == frames * packets ? 0 : 2;
}
