#include "record/linux/collect/socket.hpp"

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <cstring>

#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/un.h>

#include "journal/event.hpp"

namespace blockyard::record {
namespace {

sockaddr_un address_of(const std::string& name, bool is_abstract, socklen_t& bytes) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (name.empty() || name.size() + 1 > sizeof address.sun_path) throw journal::Error("the socket's name is too long");
  const std::size_t leading_nul = is_abstract ? 1 : 0;
  std::memcpy(address.sun_path + leading_nul, name.data(), name.size());
  bytes = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  return address;
}

}  // namespace

FileDescriptor listen_at(const std::string& name, bool is_abstract) {
  socklen_t bytes = 0;
  const sockaddr_un address = address_of(name, is_abstract, bytes);
  FileDescriptor listener(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!listener.is_open() || bind(listener.get(), reinterpret_cast<const sockaddr*>(&address), bytes) != 0 ||
      listen(listener.get(), 1024) != 0) {
    throw journal::Error(std::string("the recorder's socket can't be opened: ") + std::strerror(errno));
  }
  return listener;
}

FileDescriptor accept_program(const FileDescriptor& listener) {
  return FileDescriptor(accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
}

std::optional<Caller> identify(const FileDescriptor& connection) {
  ucred peer{};
  socklen_t peer_bytes = sizeof peer;
  getsockopt(connection.get(), SOL_SOCKET, SO_PEERCRED, &peer, &peer_bytes);
  const timeval patience{1, 0};
  setsockopt(connection.get(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  Caller caller;
  Hello& hello = caller.hello;
  if (recv(connection.get(), &hello, sizeof hello, 0) != static_cast<ssize_t>(sizeof hello)) return std::nullopt;
  caller.pid = peer.pid != 0 ? peer.pid : hello.pid;
  if (peer.uid != geteuid() && geteuid() != 0) {
    std::fprintf(stderr,
                 "blockyard: process %d is not recorded: it runs as user %u, and the recorder as user %u; run "
                 "'blockyard record' as that user or as root\n",
                 static_cast<int>(caller.pid), peer.uid, geteuid());
    return std::nullopt;
  }
  if (hello.version != protocol_version) return std::nullopt;
  caller.pidfd = FileDescriptor(static_cast<int>(syscall(SYS_pidfd_open, caller.pid, 0)));
  return caller;
}

bool send_welcome(const FileDescriptor& connection, const Welcome& welcome, int file) {
  Welcome copy = welcome;
  iovec part{&copy, sizeof copy};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> ancillary{};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  if (file >= 0) {
    message.msg_control = ancillary.data();
    message.msg_controllen = ancillary.size();
    cmsghdr* header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof file);
    std::memcpy(CMSG_DATA(header), &file, sizeof file);
  }
  return sendmsg(connection.get(), &message, MSG_NOSIGNAL) == static_cast<ssize_t>(sizeof copy);
}

}  // namespace blockyard::record
