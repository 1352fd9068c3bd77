#include "record/linux/variables.hpp"

#include <cstddef>
#include <cstring>

#include <fcntl.h>
#include <unistd.h>

#include "record/channel.hpp"
#include "record/linux/frames.hpp"

namespace blockyard::record {
namespace {

// Without libc: the hooks of dlsym read the environment, too.
void take_variable(const char* entry, const char* name, char* into, std::size_t capacity) {
  for (; *name != '\0'; ++name, ++entry) {
    if (*entry != *name) return;
  }
  if (*entry++ != '=') return;
  std::size_t bytes = 0;
  while (entry[bytes] != '\0') {
    if (++bytes == capacity) return;
  }
  for (std::size_t at = 0; at <= bytes; ++at) {
    into[at] = entry[at];
    asm volatile("" ::: "memory");  // or the compiler calls memcpy
  }
}

void take_variables(const char* entry) {
  take_variable(entry, socket_variable, variables.socket, sizeof variables.socket);
  take_variable(entry, frame_symbol_variable, variables.frame_symbol, sizeof variables.frame_symbol);
  take_variable(entry, preload_variable, variables.preloaded, sizeof variables.preloaded);
  take_variable(entry, stop_variable, variables.watched_limits, sizeof variables.watched_limits);
  take_variable(entry, asleep_variable, variables.asleep_folder, sizeof variables.asleep_folder);
}

// The first malloc may come before libc has set `environ`; the kernel's copy is always there.
void read_environment_file() {
  static char text[1 << 16];
  const int file = open("/proc/self/environ", O_RDONLY | O_CLOEXEC);
  if (file < 0) return;
  std::size_t held = 0;
  for (;;) {
    const ssize_t got = read(file, text + held, sizeof text - 1 - held);
    if (got <= 0) break;
    held += static_cast<std::size_t>(got);
    std::size_t at = 0;
    for (std::size_t end = at; end < held; ++end) {
      if (text[end] != '\0') continue;
      take_variables(text + at);
      at = end + 1;
    }
    // An entry longer than the buffer is none of ours: drop what was read of it.
    held = at == 0 && held == sizeof text - 1 ? 0 : held - at;
    std::memmove(text, text + at, held);
  }
  close(file);
}

}  // namespace

Variables variables{};

void read_environment() {
  if (variables.are_read) return;
  variables.are_read = true;
  if (environ != nullptr) {
    for (char** entry = environ; *entry != nullptr; ++entry) take_variables(*entry);
  } else {
    read_environment_file();
  }
}

const char* collector_socket() {
  read_environment();
  return variables.socket;
}

const char* preloaded_libraries() {
  read_environment();
  return variables.preloaded;
}

const char* frame_symbol() {
  read_environment();
  return variables.frame_symbol[0] != '\0' ? variables.frame_symbol : nullptr;
}

}  // namespace blockyard::record
