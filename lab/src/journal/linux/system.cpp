#include "journal/system.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/types.h>
#include <unistd.h>

namespace blockyard::journal::system {

int create_file(const std::string& path, bool overwrite) {
  return ::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | (overwrite ? O_TRUNC : O_EXCL), 0666);
}

std::ptrdiff_t write_file(int file, const void* bytes, std::size_t count) { return ::write(file, bytes, count); }

bool overwrite_in_file(int file, std::uint64_t offset, const void* bytes, std::size_t count) {
  return ::pwrite(file, bytes, count, static_cast<off_t>(offset)) == static_cast<ssize_t>(count);
}

int close_file(int file) { return ::close(file); }

void ask_for_huge_pages(void* memory, std::size_t bytes) { ::madvise(memory, bytes, MADV_HUGEPAGE); }

std::tm utc_now() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  ::gmtime_r(&now, &parts);
  return parts;
}

}  // namespace blockyard::journal::system
