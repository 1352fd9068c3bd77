// A client and a server in one thread, over the loopback.
#include <string.h>

#include "blockyard/frame.h"
#include "blockyard_enet.h"

/// In each frame `packets` of up to `largest` bytes go to the server and come back. Returns how many came back within a
/// minute.
static int echo(int frames, int packets, int largest) {
  static char text[8192];
  ENetAddress address = {0};
  enet_address_set_host_ip(&address, "127.0.0.1");
  ENetHost* const server = enet_host_create(&address, 4, 1, 0, 0);
  ENetHost* const client = enet_host_create(NULL, 1, 1, 0, 0);
  if (server == NULL || client == NULL) return -1;
  ENetPeer* const peer = enet_host_connect(client, &server->address, 1, 0);
  memset(text, 'x', sizeof text);
  int sent = 0, came_back = 0, is_connected = 0, is_over = 0;
  const enet_uint32 start = enet_time_get();
  while (!is_over && enet_time_get() - start < 60000) {
    ENetEvent event;
    if (is_connected && sent == came_back && sent < frames * packets) {
      for (int i = 0; i < packets; ++i, ++sent) {
        const size_t bytes = (size_t)(1 + i * 997 % largest);
        enet_peer_send(peer, 0, enet_packet_create(text, bytes, ENET_PACKET_FLAG_RELIABLE));
      }
    }
    by_tag_push("server");
    while (enet_host_service(server, &event, 0) > 0) {
      if (event.type == ENET_EVENT_TYPE_RECEIVE) enet_peer_send(event.peer, 0, event.packet);
    }
    by_tag_pop();
    while (enet_host_service(client, &event, 0) > 0) {
      is_over |= event.type == ENET_EVENT_TYPE_DISCONNECT;
      is_connected |= event.type == ENET_EVENT_TYPE_CONNECT;
      if (event.type != ENET_EVENT_TYPE_RECEIVE) continue;
      enet_packet_destroy(event.packet);
      if (++came_back % packets == 0) by_frame_mark();
      if (came_back == frames * packets) enet_peer_disconnect(peer, 0);
    }
  }
  enet_host_destroy(client);
  enet_host_destroy(server);
  return came_back;
}
