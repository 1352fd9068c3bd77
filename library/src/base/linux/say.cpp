#include "base/say.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstdarg>
#include <cstddef>
#include <cstdio>

namespace blockyard::base {
namespace {

void write_text(int descriptor, const char* format, va_list arguments) {
  char text[1024];
  const int length = std::vsnprintf(text, sizeof text, format, arguments);
  const std::size_t bytes = std::min(static_cast<std::size_t>(std::max(length, 0)), sizeof text - 1);
  for (std::size_t done = 0; done != bytes;) {
    const ssize_t written = write(descriptor, text + done, bytes - done);
    if (written <= 0) {
      return;
    }
    done += static_cast<std::size_t>(written);
  }
}

}  // namespace

void say(const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  write_text(standard_error, format, arguments);
  va_end(arguments);
}

void say_to(int descriptor, const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  write_text(descriptor, format, arguments);
  va_end(arguments);
}

}  // namespace blockyard::base
