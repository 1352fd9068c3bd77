#include "replay/results/atomic_file.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <utility>

#include "journal/event.hpp"

namespace blockyard::replay {
namespace {

constexpr std::size_t buffer_bytes = std::size_t{1} << 20;

}  // namespace

AtomicFile::AtomicFile(std::string path) : path_(std::move(path)), part_(path_ + ".part"), buffer_(buffer_bytes) {
  file_ = open(part_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (file_ < 0) fail("can't be written");
}

AtomicFile::~AtomicFile() {
  if (file_ < 0) return;
  close(file_);
  unlink(part_.c_str());
}

void AtomicFile::write(const void* bytes, std::size_t count) {
  const char* from = static_cast<const char*>(bytes);
  while (count != 0) {
    if (buffered_ == buffer_.size()) flush();
    const std::size_t fits = std::min(count, buffer_.size() - buffered_);
    std::memcpy(buffer_.data() + buffered_, from, fits);
    buffered_ += fits;
    from += fits;
    count -= fits;
  }
}

void AtomicFile::write_at(std::uint64_t offset, const void* bytes, std::size_t count) {
  flush();
  write_fully(bytes, count, offset);
}

void AtomicFile::commit() {
  flush();
  const int file = std::exchange(file_, -1);
  if (close(file) != 0 || std::rename(part_.c_str(), path_.c_str()) != 0) {
    const int reason = errno;
    unlink(part_.c_str());
    errno = reason;
    fail("can't be written");
  }
}

void AtomicFile::flush() {
  write_fully(buffer_.data(), buffered_, flushed_);
  flushed_ += buffered_;
  buffered_ = 0;
}

void AtomicFile::write_fully(const void* bytes, std::size_t count, std::uint64_t offset) {
  const char* from = static_cast<const char*>(bytes);
  while (count != 0) {
    const ssize_t written = pwrite(file_, from, count, static_cast<off_t>(offset));
    if (written < 0) {
      if (errno == EINTR) continue;
      fail("can't be written");
    }
    from += written;
    offset += static_cast<std::uint64_t>(written);
    count -= static_cast<std::size_t>(written);
  }
}

void AtomicFile::fail(const char* what) const {
  throw journal::Error(path_ + " " + what + ": " + std::strerror(errno));
}

void make_folder(const std::string& path) {
  std::error_code reason;
  std::filesystem::create_directories(path, reason);
  if (reason) throw journal::Error("the folder " + path + " can't be made: " + reason.message());
}

}  // namespace blockyard::replay
