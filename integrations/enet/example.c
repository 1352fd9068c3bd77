// A client and a server in one thread, over the loopback: 200 packets go there and come back, the largest in fragments.
#include <stdio.h>
#include <string.h>

#include "blockyard_enet.h"

enum { packets = 200 };

static char text[5000];

static void send_one(ENetPeer* to, int number) {
  const size_t bytes = 1 + (size_t)(number * 997) % sizeof text;
  enet_peer_send(to, 0, enet_packet_create(text, bytes, ENET_PACKET_FLAG_RELIABLE));
}

int main(void) {
  if (by_enet_initialize() != 0) return 1;
  ENetAddress address = {0};
  enet_address_set_host_ip(&address, "127.0.0.1");
  ENetHost* const server = enet_host_create(&address, 4, 1, 0, 0);
  ENetHost* const client = enet_host_create(NULL, 1, 1, 0, 0);
  if (server == NULL || client == NULL) return 2;
  ENetPeer* const peer = enet_host_connect(client, &server->address, 1, 0);
  memset(text, 'x', sizeof text);
  int came_back = 0;
  int sent = 0;
  int is_over = 0;
  const enet_uint32 start = enet_time_get();
  while (!is_over && enet_time_get() - start < 30000) {
    ENetEvent event;
    by_tag_push("server");
    while (enet_host_service(server, &event, 0) > 0) {
      if (event.type == ENET_EVENT_TYPE_RECEIVE) enet_peer_send(event.peer, 0, event.packet);
    }
    by_tag_pop();
    while (enet_host_service(client, &event, 1) > 0) {
      if (event.type == ENET_EVENT_TYPE_DISCONNECT) is_over = 1;
      if (event.type == ENET_EVENT_TYPE_CONNECT) send_one(peer, sent++);
      if (event.type != ENET_EVENT_TYPE_RECEIVE) continue;
      enet_packet_destroy(event.packet);
      if (++came_back == packets) enet_peer_disconnect(peer, 0);
      if (sent < packets) send_one(peer, sent++);
    }
  }
  printf("%d packets came back\n", came_back);
  enet_host_destroy(client);
  enet_host_destroy(server);
  enet_deinitialize();
  return is_over ? 0 : 3;
}
