// The handshake with the collector. It makes system calls only, because it may run inside the first malloc of a
// process.
#include "record/linux/attach.hpp"

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

namespace blockyard::record {
namespace {

bool send_all(int socket, const void* data, std::size_t bytes) {
  const char* from = static_cast<const char*>(data);
  while (bytes > 0) {
    const ssize_t sent = send(socket, from, bytes, MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0) return false;
    from += sent;
    bytes -= static_cast<std::size_t>(sent);
  }
  return true;
}

// The answer and, when the recording is granted, the region's descriptor. Messages are small: they arrive whole.
bool receive_welcome(int socket, Welcome& welcome, int& region) {
  iovec part{&welcome, sizeof welcome};
  alignas(cmsghdr) char ancillary[CMSG_SPACE(sizeof(int))] = {};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = ancillary;
  message.msg_controllen = sizeof ancillary;
  ssize_t got = 0;
  do {
    got = recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
  } while (got < 0 && errno == EINTR);
  region = -1;
  if (got != static_cast<ssize_t>(sizeof welcome)) return false;
  const cmsghdr* header = CMSG_FIRSTHDR(&message);
  if (header != nullptr && header->cmsg_level == SOL_SOCKET && header->cmsg_type == SCM_RIGHTS) {
    std::memcpy(&region, CMSG_DATA(header), sizeof region);
  }
  return true;
}

// nullptr when there is no memory.
void* map_page(int file, std::uint64_t offset) {
  void* page =
      mmap(nullptr, page_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, file, static_cast<off_t>(offset));
  if (page == MAP_FAILED) return nullptr;
  // A child must not share the rings, and a core file need not contain them. What grows from this page inherits both.
  madvise(page, page_bytes, MADV_DONTFORK);
  madvise(page, page_bytes, MADV_DONTDUMP);
  return page;
}

}  // namespace

int connect_to_collector(const char* name) {
  const std::size_t length = std::strlen(name);
  sockaddr_un address{};
  if (length == 0 || length + 1 > sizeof address.sun_path) return -1;
  const int connection = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
  if (connection < 0) return -1;
  for (const std::size_t leading_nul : {std::size_t{0}, std::size_t{1}}) {
    address = {};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path + leading_nul, name, length);
    const auto bytes = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + length);
    int result = 0;
    do {
      result = connect(connection, reinterpret_cast<const sockaddr*>(&address), bytes);
    } while (result != 0 && errno == EINTR);
    if (result == 0) return connection;
  }
  close(connection);
  return -1;
}

bool shake_hands(int socket, const Hello& hello, Attachment& attachment) {
  int region = -1;
  bool granted = send_all(socket, &hello, sizeof hello) && receive_welcome(socket, attachment.welcome, region) &&
                 attachment.welcome.version == protocol_version && attachment.welcome.key != 0 && region >= 0;
  close(socket);
  if (granted) {
    attachment.control = static_cast<Control*>(map_page(region, 0));
    if (attachment.control != nullptr)
      attachment.empty_page = map_page(region, Layout(*attachment.control).empty_page_at());
    granted = attachment.empty_page != nullptr;
    if (!granted && attachment.control != nullptr) munmap(attachment.control, page_bytes);
  }
  if (region >= 0) close(region);
  return granted;
}

void tell(const char* name, const Hello& hello) {
  const int connection = connect_to_collector(name);
  if (connection < 0) return;
  static_cast<void>(send_all(connection, &hello, sizeof hello));
  close(connection);
}

int start_collector(const char* folder) {
  char path[4096];
  // In a wheel and when installed, the collector lies beside the library, as it does in a build folder.
  const int length = std::snprintf(path, sizeof path, "%s/blockyard-collect", folder);
  if (length <= 0 || static_cast<std::size_t>(length) >= sizeof path || access(path, X_OK) != 0) return -1;
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) return -1;
  // Forks twice and without SIGCHLD, so that the program never learns of a child that it did not start. The bare system
  // call also keeps the program's fork handlers out of it.
  const pid_t middle = static_cast<pid_t>(syscall(SYS_clone, 0, nullptr, nullptr, nullptr, nullptr));
  if (middle == 0) {
    const pid_t inner = static_cast<pid_t>(syscall(SYS_clone, 0, nullptr, nullptr, nullptr, nullptr));
    if (inner != 0) _exit(inner < 0 ? 1 : 0);
    setsid();
    constexpr int inherited = 3;
    if (ends[1] == inherited) {
      fcntl(inherited, F_SETFD, 0);
    } else {
      dup2(ends[1], inherited);
    }
    char program[] = "blockyard-collect";
    char option[] = "--connected";
    char number[] = "3";
    char* arguments[] = {program, option, number, nullptr};
    char* environment[] = {nullptr};
    execve(path, arguments, environment);
    _exit(127);
  }
  close(ends[1]);
  if (middle < 0) {
    close(ends[0]);
    return -1;
  }
  int status = 0;
  while (waitpid(middle, &status, __WALL) < 0 && errno == EINTR) {
  }
  return ends[0];
}

}  // namespace blockyard::record
