// Loops in C of the system calls that the sockets library makes: the lower limit in the packets benchmark.
//
// Benchmarks.exe loads this library, so it measures with the same sockets, clients, packets and times as every other
// way. Addresses in the kernel's form, messages and their parts are written before the calls. Calls use syscall(), as
// the C# library does on Mono: libc's sendto and similar functions cost more in a program with several threads. Every
// function returns 0, an error number, or -1 for a packet of the wrong size. One thread.
#define _GNU_SOURCE
#include <errno.h>
#include <netinet/in.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { most_clients = 256, most_each = 4, most_received = 64, packet_size = 64, receive_room = 1600, name_room = 32 };
enum { datagram_size = 1500, level_udp = 17, option_segment = 103 };

static int clients;
static struct mmsghdr to_each[most_clients];
static struct mmsghdr several_to_each[most_clients];
static struct iovec parts[most_clients * most_each];
static struct mmsghdr incoming[most_received];
static struct iovec places[most_received];
static _Alignas(64) char outgoing_bytes[most_clients * most_each][packet_size];
static _Alignas(64) char incoming_bytes[most_received][receive_room];
static _Alignas(64) char names[most_clients][name_room];
static _Alignas(64) char senders[most_received][name_room];
static socklen_t name_lengths[most_clients];
static union {
  char bytes[CMSG_SPACE(sizeof(uint16_t))];
  struct cmsghdr aligned;
} cut;

static void message_of(struct mmsghdr* message, int client, struct iovec* from, size_t count) {
  memset(message, 0, sizeof *message);
  message->msg_hdr.msg_name = names[client];
  message->msg_hdr.msg_namelen = name_lengths[client];
  message->msg_hdr.msg_iov = from;
  message->msg_hdr.msg_iovlen = count;
}

// Adds a client with an address of 4 or 16 bytes in network order.
int calls_add_client(const uint8_t* address, int bytes, int port) {
  if (clients == most_clients) {
    return ENOBUFS;
  }
  if (bytes == 4) {
    struct sockaddr_in name = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    memcpy(&name.sin_addr, address, 4);
    memcpy(names[clients], &name, sizeof name);
    name_lengths[clients] = sizeof name;
  } else {
    struct sockaddr_in6 name = {.sin6_family = AF_INET6, .sin6_port = htons((uint16_t)port)};
    memcpy(&name.sin6_addr, address, 16);
    memcpy(names[clients], &name, sizeof name);
    name_lengths[clients] = sizeof name;
  }

  struct cmsghdr* control = &cut.aligned;
  control->cmsg_level = level_udp;
  control->cmsg_type = option_segment;
  control->cmsg_len = CMSG_LEN(sizeof(uint16_t));
  *(uint16_t*)CMSG_DATA(control) = packet_size;

  struct iovec* first = &parts[clients * most_each];
  for (int i = 0; i < most_each; i++) {
    first[i].iov_base = outgoing_bytes[(clients * most_each) + i];
    first[i].iov_len = packet_size;
  }
  message_of(&to_each[clients], clients, first, 1);
  message_of(&several_to_each[clients], clients, first, most_each);
  several_to_each[clients].msg_hdr.msg_control = cut.bytes;
  several_to_each[clients].msg_hdr.msg_controllen = sizeof cut.bytes;
  clients++;
  return 0;
}

int calls_receive_each(int descriptor, int count) {
  for (int i = 0; i < count; i++) {
    socklen_t length = name_room;
    long got = syscall(SYS_recvfrom, descriptor, incoming_bytes[0], datagram_size, MSG_DONTWAIT | MSG_TRUNC, senders[0],
                       &length);
    if (got != packet_size) {
      return got < 0 ? errno : -1;
    }
  }
  return 0;
}

int calls_receive_batch(int descriptor, int count) {
  for (int i = 0; i < most_received && places[i].iov_base == NULL; i++) {
    places[i].iov_base = incoming_bytes[i];
    places[i].iov_len = datagram_size;
    incoming[i].msg_hdr.msg_name = senders[i];
    incoming[i].msg_hdr.msg_namelen = name_room;
    incoming[i].msg_hdr.msg_iov = &places[i];
    incoming[i].msg_hdr.msg_iovlen = 1;
  }
  while (count > 0) {
    long got = syscall(SYS_recvmmsg, descriptor, incoming, most_received, MSG_DONTWAIT, NULL);
    if (got <= 0) {
      return got < 0 ? errno : -1;
    }
    for (long i = 0; i < got; i++) {
      incoming[i].msg_hdr.msg_namelen = name_room;
      if (incoming[i].msg_len != packet_size) {
        return -1;
      }
    }
    count -= (int)got;
  }
  return 0;
}

int calls_send_each(int descriptor, int each) {
  for (int client = 0; client < clients; client++) {
    for (int i = 0; i < each; i++) {
      long sent = syscall(SYS_sendto, descriptor, outgoing_bytes[0], packet_size, MSG_DONTWAIT | MSG_NOSIGNAL,
                          names[client], name_lengths[client]);
      if (sent != packet_size) {
        return sent < 0 ? errno : -1;
      }
    }
  }
  return 0;
}

// Sends each client's packets as one message, which the kernel cuts (UDP_SEGMENT) when there are several.
int calls_send_batch(int descriptor, int each) {
  struct mmsghdr* messages = each > 1 ? several_to_each : to_each;
  for (int next = 0; next < clients;) {
    long sent = syscall(SYS_sendmmsg, descriptor, messages + next, clients - next, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent <= 0) {
      return sent < 0 ? errno : -1;
    }
    next += (int)sent;
  }
  return 0;
}
