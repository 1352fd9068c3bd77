#include "replay/plan/file_array.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "journal/event.hpp"

namespace blockyard::replay {
namespace {

constexpr std::size_t piece_bytes = std::size_t{4} << 20;

[[noreturn]] void fail(const std::string& path, int reason) {
  throw journal::Error(path + " can't be written: " + std::strerror(reason));
}

}  // namespace

FileArray::FileArray(const std::string& path) : path_(path + ".pairs.part") {
  file_ = open(path_.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (file_ < 0) fail(path_, errno);
  unlink(path_.c_str());
}

FileArray::~FileArray() {
  if (numbers_ != nullptr) munmap(numbers_, room_ * sizeof *numbers_);
  close(file_);
}

void FileArray::grow() {
  const std::size_t bytes = room_ * sizeof *numbers_;
  // Takes room on the disk first: a write to a mapped page without room would end the process (SIGBUS).
  if (const int reason = posix_fallocate(file_, static_cast<off_t>(bytes), piece_bytes); reason != 0)
    fail(path_, reason);
  void* const mapped = numbers_ == nullptr ? mmap(nullptr, piece_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file_, 0)
                                           : mremap(numbers_, bytes, bytes + piece_bytes, MREMAP_MAYMOVE);
  if (mapped == MAP_FAILED) fail(path_, errno);
  numbers_ = static_cast<std::uint32_t*>(mapped);
  room_ += piece_bytes / sizeof *numbers_;
}

}  // namespace blockyard::replay
