// Tells the forms of journals apart by their first bytes.
#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <string_view>

#include "journal/byj_reader.hpp"
#include "journal/input.hpp"
#include "journal/reader.hpp"
#include "journal/text_reader.hpp"

namespace blockyard::journal {

std::unique_ptr<Source> open(const std::string& path) {
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) throw Error(path + " can't be opened: " + std::strerror(errno));
  std::array<char, 16> first{};
  const ssize_t got = ::read(file, first.data(), first.size());
  const int problem = errno;
  ::close(file);
  if (got < 0) throw Error(path + " can't be read: " + std::strerror(problem));
  if (got == 0) throw Error(path + " is empty: 0 bytes are no journal");
  const std::string_view bytes(first.data(), static_cast<std::size_t>(got));
  if (looks_like_byj(bytes)) return std::make_unique<ByjSource>(path);
  return std::make_unique<TextSource>(open_input(path), path);
}

}  // namespace blockyard::journal
