// Frames of a game that sends 64 packets to its server over the loopback and gets them back: on ENet's own allocator,
// or with ENGINE_ON=blockyard on the heap.
#include <stdlib.h>
#include <string.h>

#include "blockyard/frame.h"
#include "enet/blockyard_enet.h"

enum { frames = 600, packets = 64 };

static char text[1200];

int main(void) {
  if ((getenv("ENGINE_ON") != NULL ? by_enet_initialize() : enet_initialize()) != 0) return 1;
  ENetAddress address = {0};
  enet_address_set_host_ip(&address, "127.0.0.1");
  ENetHost* const server = enet_host_create(&address, 4, 1, 0, 0);
  ENetHost* const client = enet_host_create(NULL, 1, 1, 0, 0);
  if (server == NULL || client == NULL) return 2;
  ENetPeer* const peer = enet_host_connect(client, &server->address, 1, 0);
  memset(text, 'x', sizeof text);
  int frame = 0;
  int came_back = packets;
  int is_connected = 0;
  const enet_uint32 start = enet_time_get();
  while (frame < frames && enet_time_get() - start < 60000) {
    ENetEvent event;
    if (is_connected && came_back == packets) {
      came_back = 0;
      for (int i = 0; i < packets; ++i)
        enet_peer_send(peer, 0,
                       enet_packet_create(text, (size_t)(1 + i * 997 % (int)sizeof text), ENET_PACKET_FLAG_RELIABLE));
    }
    while (enet_host_service(server, &event, 0) > 0) {
      if (event.type == ENET_EVENT_TYPE_RECEIVE) enet_peer_send(event.peer, 0, event.packet);
    }
    while (enet_host_service(client, &event, 0) > 0) {
      is_connected |= event.type == ENET_EVENT_TYPE_CONNECT;
      if (event.type != ENET_EVENT_TYPE_RECEIVE) continue;
      enet_packet_destroy(event.packet);
      if (++came_back < packets) continue;
      ++frame;
      by_frame_mark();
    }
  }
  enet_host_destroy(client);
  enet_host_destroy(server);
  enet_deinitialize();
  return frame == frames ? 0 : 3;
}
