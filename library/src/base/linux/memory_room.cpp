// The limits of control groups, by the files of the kernel's cgroup-v2 documentation: memory.max, memory.high,
// memory.current, memory.stat and memory.pressure.
//
// The heap's background thread reads them, for which the C library has no locale: nothing is printed or scanned.
#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <initializer_list>
#include <iterator>
#include <string_view>

#include "base/kept_errno.hpp"
#include "base/pages.hpp"

namespace blockyard::base {

namespace {

constexpr std::uint64_t no_limit = ~std::uint64_t{0};

// The beginning of a file as text; false where it can't be read.
template <std::size_t Room>
bool read_text(const char* path, char (&text)[Room]) {
  const long file = syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC);
  if (file < 0) {
    return false;
  }
  const long length = syscall(SYS_read, file, text, Room - 1);
  syscall(SYS_close, file);
  text[std::max(length, 0L)] = '\0';
  return length > 0;
}

// The parts, one behind the other, and a closing 0; what finds no room is left out.
template <std::size_t Room>
std::string_view join(char (&text)[Room], std::initializer_list<std::string_view> parts) {
  std::size_t length = 0;
  for (const std::string_view part : parts) {
    length += part.copy(text + length, Room - 1 - length);
  }
  text[length] = '\0';
  return {text, length};
}

// The number behind `name` in a group's file, or the number that the file is; `otherwise` where there is none.
std::uint64_t number(std::string_view group, const char* file, const char* name, std::uint64_t otherwise) {
  char path[640];
  char text[4096];
  join(path, {group, "/", file});
  if (const char* const found = read_text(path, text) ? std::strstr(text, name) : nullptr; found != nullptr) {
    std::from_chars(found + std::strlen(name), std::end(text), otherwise);  // "max" is no number
  }
  return otherwise;
}

std::uint64_t room_in(std::string_view group) {
  const std::uint64_t limit =
      std::min(number(group, "memory.max", "", no_limit), number(group, "memory.high", "", no_limit));
  if (limit == no_limit) {
    return no_limit;
  }
  const std::uint64_t current = number(group, "memory.current", "", 0);
  const std::uint64_t used = current - std::min(current, number(group, "memory.stat", "inactive_file ", 0));
  return limit - std::min(limit, used);
}

}  // namespace

MemoryRoom memory_room(const char* root) {
  const KeptErrno kept;
  char path[600];
  char text[2048];
  MemoryRoom room{no_limit, 0};
  join(path, {root, "/proc/self/cgroup"});
  if (const char* own = read_text(path, text) ? std::strstr(text, "0::/") : nullptr; own != nullptr) {
    own += std::strlen("0::");
    const std::size_t length = std::strcspn(own, "\n");
    const std::size_t top = join(path, {root, "/sys/fs/cgroup"}).size();
    std::string_view group = join(path, {root, "/sys/fs/cgroup", {own, length > 1 ? length : 0}});
    room.pressure = static_cast<unsigned>(number(group, "memory.pressure", "some avg10=", 0));
    // In a container the path may be the host's: then only the folder on top is there, and it is the container's.
    room.bytes = room_in(group);
    while (group.size() > top) {
      group.remove_suffix(group.size() - group.rfind('/'));
      room.bytes = std::min(room.bytes, room_in(group));
    }
  }
  return room;
}

}  // namespace blockyard::base
