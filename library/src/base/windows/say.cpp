#include "base/say.hpp"

#include <io.h>

#include <algorithm>
#include <cstdarg>
#include <cstddef>
#include <cstdio>

namespace blockyard::base {
namespace {

void write_text(int descriptor, const char* format, va_list arguments) {
  char text[1024];
  const int length = std::vsnprintf(text, sizeof text, format, arguments);
  const int bytes = std::min(std::max(length, 0), static_cast<int>(sizeof text) - 1);
  for (int done = 0; done != bytes;) {
    const int written = _write(descriptor, text + done, static_cast<unsigned>(bytes - done));
    if (written <= 0) {
      return;
    }
    done += written;
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
