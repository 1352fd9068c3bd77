#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "journal/event.hpp"
#include "replay/plan/file_array.hpp"

namespace blockyard::replay {
namespace {

[[noreturn]] void fail(const std::string& path, int reason) {
  throw journal::Error(path + " can't be written: " + std::strerror(reason));
}

}  // namespace

PagedFile::PagedFile(const std::string& path) : path_(path + ".pairs.part") {
  file_ = open(path_.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (file_ < 0) fail(path_, errno);
  unlink(path_.c_str());
}

PagedFile::~PagedFile() {
  for (void* piece : pieces_) munmap(piece, piece_bytes);
  close(file_);
}

void* PagedFile::add_piece() {
  // Takes room on the disk first: a write to a mapped page without room would end the process (SIGBUS).
  const auto offset = static_cast<off_t>(pieces_.size() * piece_bytes);
  if (const int reason = posix_fallocate(file_, offset, static_cast<off_t>(piece_bytes)); reason != 0)
    fail(path_, reason);
  void* piece = mmap(nullptr, piece_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file_, offset);
  if (piece == MAP_FAILED) fail(path_, errno);
  pieces_.push_back(piece);
  return piece;
}

}  // namespace blockyard::replay
