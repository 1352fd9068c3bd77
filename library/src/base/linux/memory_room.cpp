// The limits of control groups, by the files of the kernel's cgroup-v2 documentation: memory.max, memory.high,
// memory.current, memory.stat and memory.pressure.
//
// The heap's background thread reads them, for which the C library has no locale: nothing is printed or scanned.
#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

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

class Path {
 public:
  void append(const char* part, std::size_t length) {
    length = std::min(length, sizeof text_ - 1 - length_);
    std::memcpy(text_ + length_, part, length);
    cut(length_ + length);
  }
  void append(const char* part) { append(part, std::strlen(part)); }
  void cut(std::size_t length) {
    length_ = length;
    text_[length_] = '\0';
  }
  std::size_t length() const { return length_; }
  const char* text() const { return text_; }

 private:
  std::size_t length_ = 0;
  char text_[600] = {};
};

class Group {
 public:
  explicit Group(const Path& folder) : folder_(folder) {}

  // The number behind `name` in a file, or the number that the file is; `otherwise` where there is none.
  std::uint64_t number(const char* file, const char* name, std::uint64_t otherwise) const {
    Path path = folder_;
    char text[4096];
    path.append("/");
    path.append(file);
    if (!read_text(path.text(), text)) {
      return otherwise;
    }
    const char* const found = std::strstr(text, name);
    if (found == nullptr) {
      return otherwise;
    }
    const char* at = found + std::strlen(name);
    const auto is_digit = [&] { return *at >= '0' && *at <= '9'; };
    if (!is_digit()) {
      return otherwise;  // "max" is no number
    }
    std::uint64_t value = 0;
    for (; is_digit(); ++at) {
      value = value * 10 + static_cast<unsigned>(*at - '0');
    }
    return value;
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
  const Path& folder_;
};

}  // namespace

MemoryRoom memory_room(const char* root) {
  const int saved = errno;
  Path path;
  char text[2048];
  path.append(root);
  const std::size_t top = path.length();
  path.append("/proc/self/cgroup");
  MemoryRoom room{no_limit, 0};
  const char* own = read_text(path.text(), text) ? std::strstr(text, "0::/") : nullptr;
  if (own != nullptr) {
    own += std::strlen("0::");
    path.cut(top);
    path.append("/sys/fs/cgroup");
    const std::size_t mount = path.length();
    const std::size_t length = std::strcspn(own, "\n");
    path.append(own, length > 1 ? length : 0);
    room.pressure = static_cast<unsigned>(Group(path).number("memory.pressure", "some avg10=", 0));
    // In a container the path may be the host's: then only the folder on top is there, and it is the container's.
    for (;;) {
      room.bytes = std::min(room.bytes, Group(path).room());
      const char* const last = std::strrchr(path.text() + mount, '/');
      if (last == nullptr) {
        break;
      }
      path.cut(static_cast<std::size_t>(last - path.text()));
    }
  }
  errno = saved;
  return room;
}

}  // namespace blockyard::base
