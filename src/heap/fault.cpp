#include "heap/fault.hpp"

#include <unistd.h>

#include <cstdio>
#include <cstdlib>

namespace blockyard::heap {

void report_fault(const char* what, const void* pointer) {
  char line[256];
  const int length = std::snprintf(line, sizeof line, "blockyard: %s: %p\n", what, pointer);
  if (length > 0) {
    const ssize_t written = write(STDERR_FILENO, line, static_cast<std::size_t>(length));
    static_cast<void>(written);
  }
  std::abort();
}

}  // namespace blockyard::heap
