#include "journal/system.hpp"

#include <fcntl.h>
#include <io.h>
#include <share.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>

namespace blockyard::journal::system {

int create_file(const std::string& path, bool overwrite) {
  const std::filesystem::path name(reinterpret_cast<const char8_t*>(path.c_str()));
  int file = -1;
  const int flags = _O_WRONLY | _O_CREAT | _O_BINARY | _O_NOINHERIT | (overwrite ? _O_TRUNC : _O_EXCL);
  errno = _wsopen_s(&file, name.c_str(), flags, _SH_DENYWR, _S_IREAD | _S_IWRITE);
  return file;
}

std::ptrdiff_t write_file(int file, const void* bytes, std::size_t count) {
  constexpr std::size_t most = std::size_t{1} << 30;
  return _write(file, bytes, static_cast<unsigned>(std::min(count, most)));
}

bool overwrite_in_file(int file, std::uint64_t offset, const void* bytes, std::size_t count) {
  const auto end = _lseeki64(file, 0, SEEK_CUR);
  return end >= 0 && _lseeki64(file, static_cast<long long>(offset), SEEK_SET) >= 0 &&
         _write(file, bytes, static_cast<unsigned>(count)) == static_cast<int>(count) &&
         _lseeki64(file, end, SEEK_SET) == end;
}

int close_file(int file) { return _close(file); }

void ask_for_huge_pages(void*, std::size_t) {}

std::tm utc_now() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  gmtime_s(&parts, &now);
  return parts;
}

}  // namespace blockyard::journal::system
