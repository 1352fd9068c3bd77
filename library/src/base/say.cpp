#include "base/say.hpp"

#include <algorithm>
#include <cstdarg>
#include <cstdio>

namespace blockyard::base {
namespace {

void write_text(int descriptor, const char* format, va_list arguments) {
  char text[1024];
  const int length = std::vsnprintf(text, sizeof text, format, arguments);
  write_bytes(descriptor, text, std::min(static_cast<std::size_t>(std::max(length, 0)), sizeof text - 1));
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
