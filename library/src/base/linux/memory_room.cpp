// The limits of control groups, by the files of the kernel's cgroup-v2 documentation: memory.max, memory.high,
// memory.current, memory.stat and memory.pressure.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "base/pages.hpp"

namespace blockyard::base {

namespace {

constexpr std::uint64_t no_limit = ~std::uint64_t{0};

// The beginning of a file as text; false where it can't be read.
template <std::size_t Room>
bool read_text(const char* path, char (&text)[Room]) {
  const int file = open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) {
    return false;
  }
  const ssize_t length = read(file, text, Room - 1);
  close(file);
  text[std::max<ssize_t>(length, 0)] = '\0';
  return length > 0;
}

class Group {
 public:
  explicit Group(const char* folder) : folder_(folder) {}

  // The number behind `name` in a file, or the number that the file is; `otherwise` where there is none.
  std::uint64_t number(const char* file, const char* name, std::uint64_t otherwise) const {
    char path[600];
    char text[4096];
    std::snprintf(path, sizeof path, "%s/%s", folder_, file);
    if (!read_text(path, text)) {
      return otherwise;
    }
    const char* const found = std::strstr(text, name);
    if (found == nullptr) {
      return otherwise;
    }
    const char* const digits = found + std::strlen(name);
    char* end = nullptr;
    const std::uint64_t value = std::strtoull(digits, &end, 10);
    return end != digits ? value : otherwise;  // "max" is no number
  }

  std::uint64_t room() const {
    const std::uint64_t limit = std::min(number("memory.max", "", no_limit), number("memory.high", "", no_limit));
    if (limit == no_limit) {
      return no_limit;
    }
    const std::uint64_t current = number("memory.current", "", 0);
    const std::uint64_t used = current - std::min(current, number("memory.stat", "inactive_file ", 0));
    return limit - std::min(limit, used);
  }

 private:
  const char* folder_;
};

}  // namespace

MemoryRoom memory_room(const char* root) {
  const int saved = errno;
  char path[512];
  char text[2048];
  std::snprintf(path, sizeof path, "%s/proc/self/cgroup", root);
  MemoryRoom room{no_limit, 0};
  const char* own = read_text(path, text) ? std::strstr(text, "0::/") : nullptr;
  if (own != nullptr) {
    own += std::strlen("0::");
    const std::size_t top = static_cast<std::size_t>(std::snprintf(path, sizeof path, "%s/sys/fs/cgroup", root));
    const std::size_t length = std::strcspn(own, "\n");
    std::snprintf(path + top, sizeof path - top, "%.*s", static_cast<int>(length > 1 ? length : 0), own);
    room.pressure = static_cast<unsigned>(Group(path).number("memory.pressure", "some avg10=", 0));
    // In a container the path may be the host's: then only the folder on top is there, and it is the container's.
    for (;;) {
      room.bytes = std::min(room.bytes, Group(path).room());
      char* const last = std::strrchr(path + top, '/');
      if (last == nullptr) {
        break;
      }
      *last = '\0';
    }
  }
  errno = saved;
  return room;
}

}  // namespace blockyard::base
