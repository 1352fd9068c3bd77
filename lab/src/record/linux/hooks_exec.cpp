// The hooks of the functions that start another program. A launcher that sets LD_PRELOAD for its own purposes, or
// clears the environment, would lose the recorder: it is put back. And the collector learns which program comes, so
// that one that begins without the recorder can be named.
//
// They may run in a child made by vfork(), in its parent's memory: they make system calls and write to their own stack.
#include <cstdarg>
#include <cstddef>
#include <cstring>
#include <type_traits>

#include <alloca.h>
#include <spawn.h>
#include <unistd.h>

#include "base/kept_errno.hpp"
#include "blockyard/detail/visibility.h"
#include "record/linux/attach.hpp"
#include "record/linux/frames.hpp"
#include "record/linux/symbols.hpp"
#include "record/linux/variables.hpp"

namespace blockyard::record {
namespace {

constexpr const char* preload = "LD_PRELOAD";

using Strings = char* const*;

std::size_t count_of(Strings strings) {
  std::size_t count = 0;
  while (strings != nullptr && strings[count] != nullptr) ++count;
  return count;
}

// The value of `name`; nullptr where it is not set.
const char* value_of(Strings environment, const char* name) {
  const std::size_t length = std::strlen(name);
  for (std::size_t i = 0; environment != nullptr && environment[i] != nullptr; ++i) {
    if (std::strncmp(environment[i], name, length) == 0 && environment[i][length] == '=')
      return environment[i] + length + 1;
  }
  return nullptr;
}

bool is_recorded() { return collector_socket()[0] != '\0' && preloaded_libraries()[0] != '\0'; }

// Whether a program that starts with it would find the recorder.
bool has_recorder(Strings environment) {
  const char* libraries = value_of(environment, preload);
  return libraries != nullptr && std::strstr(libraries, preloaded_libraries()) != nullptr &&
         value_of(environment, socket_variable) != nullptr && value_of(environment, preload_variable) != nullptr;
}

// How much room put_back() needs.
struct Needs {
  std::size_t entries;
  std::size_t bytes;
};

Needs needs_of(Strings environment) {
  const char* libraries = value_of(environment, preload);
  const char* symbol = frame_symbol();
  return {count_of(environment) + 5,
          2 * std::strlen(preloaded_libraries()) + (libraries == nullptr ? 0 : std::strlen(libraries)) +
              std::strlen(collector_socket()) + (symbol == nullptr ? 0 : std::strlen(symbol)) + 128};
}

// A copy of the environment, in `entries` and `bytes`, with the recorder in it.
char** put_back(Strings environment, char** entries, char* bytes) {
  std::size_t count = 0;
  const auto is = [](const char* entry, const char* name) {
    const std::size_t length = std::strlen(name);
    return std::strncmp(entry, name, length) == 0 && entry[length] == '=';
  };
  for (std::size_t i = 0; environment != nullptr && environment[i] != nullptr; ++i) {
    if (!is(environment[i], preload) && !is(environment[i], socket_variable) && !is(environment[i], preload_variable) &&
        !is(environment[i], frame_symbol_variable))
      entries[count++] = environment[i];
  }
  const auto add = [&](const char* name, const char* value, const char* more) {
    entries[count++] = bytes;
    for (const char* part : {name, "=", value, more == nullptr ? "" : ":", more == nullptr ? "" : more}) {
      const std::size_t length = std::strlen(part);
      std::memcpy(bytes, part, length);
      bytes += length;
    }
    *bytes++ = '\0';
  };
  const char* libraries = value_of(environment, preload);
  const bool keeps_libraries = libraries != nullptr && std::strstr(libraries, preloaded_libraries()) != nullptr;
  if (keeps_libraries) {
    add(preload, libraries, nullptr);
  } else {
    add(preload, preloaded_libraries(), libraries != nullptr && libraries[0] != '\0' ? libraries : nullptr);
  }
  add(socket_variable, collector_socket(), nullptr);
  add(preload_variable, preloaded_libraries(), nullptr);
  if (frame_symbol() != nullptr) add(frame_symbol_variable, frame_symbol(), nullptr);
  entries[count] = nullptr;
  return entries;
}

void tell_of(Purpose purpose, const char* program, int spawned) {
  const base::KeptErrno kept;
  Hello hello;
  hello.pid = getpid();
  hello.purpose = purpose;
  hello.spawned = spawned;
  std::strncpy(hello.program, program, sizeof hello.program - 1);
  tell(collector_socket(), hello);
}

// Found when the program is loaded: a child made by vfork() must not wait for the loader's lock, which another thread
// of its parent may hold. Whoever starts a program before that finds them then.
struct ExecFunctions {
  decltype(&::execve) execve;
  decltype(&::execvpe) execvpe;
  decltype(&::fexecve) fexecve;
  decltype(&::posix_spawn) posix_spawn;
  decltype(&::posix_spawnp) posix_spawnp;
  bool are_found;
};

ExecFunctions found{};

const ExecFunctions& exec_functions() {
  if (__atomic_load_n(&found.are_found, __ATOMIC_ACQUIRE)) return found;
  const auto find = [](auto& function, const char* name) {
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(find_next(name).address);
  };
  find(found.execve, "execve");
  find(found.execvpe, "execvpe");
  find(found.fexecve, "fexecve");
  find(found.posix_spawn, "posix_spawn");
  find(found.posix_spawnp, "posix_spawnp");
  __atomic_store_n(&found.are_found, true, __ATOMIC_RELEASE);
  return found;
}

__attribute__((constructor)) void find_at_load() {
  if (is_recorded() && !program_is_sanitized()) exec_functions();
}

// Calls `execute(environment)` with the recorder in the environment. Returns only where that fails.
template <typename Execute>
int become(const char* program, Strings environment, Execute execute) {
  if (!is_recorded() || program == nullptr) return execute(environment);
  if (!has_recorder(environment)) {
    const Needs needs = needs_of(environment);
    environment = put_back(environment, static_cast<char**>(alloca(needs.entries * sizeof(char*))),
                           static_cast<char*>(alloca(needs.bytes)));
  }
  tell_of(Purpose::executes, program, 0);
  const int result = execute(environment);
  tell_of(Purpose::stays, program, 0);
  return result;
}

template <typename Spawn>
int start(pid_t* into, const char* program, Strings environment, Spawn spawn) {
  pid_t pid = 0;
  if (into == nullptr) into = &pid;
  if (!is_recorded() || program == nullptr) return spawn(into, environment);
  if (!has_recorder(environment)) {
    const Needs needs = needs_of(environment);
    environment = put_back(environment, static_cast<char**>(alloca(needs.entries * sizeof(char*))),
                           static_cast<char*>(alloca(needs.bytes)));
  }
  const int error = spawn(into, environment);
  if (error == 0) tell_of(Purpose::executes, program, *into);
  return error;
}

int real_execve(const char* path, Strings arguments, Strings environment) {
  return become(path, environment, [=](Strings with) { return exec_functions().execve(path, arguments, with); });
}

int real_execvpe(const char* file, Strings arguments, Strings environment) {
  return become(file, environment, [=](Strings with) { return exec_functions().execvpe(file, arguments, with); });
}

}  // namespace
}  // namespace blockyard::record

using namespace blockyard::record;

// The arguments of a call that lists them, up to its NULL, as an array on the caller's stack. `rest` stands behind it.
#define BLOCKYARD_LISTED_ARGUMENTS(first, rest)                                      \
  va_list rest;                                                                      \
  va_start(rest, first);                                                             \
  std::size_t count = 1;                                                             \
  while (va_arg(rest, const char*) != nullptr) ++count;                              \
  va_end(rest);                                                                      \
  auto** const arguments = static_cast<char**>(alloca((count + 1) * sizeof(char*))); \
  va_start(rest, first);                                                             \
  arguments[0] = const_cast<char*>(first);                                           \
  for (std::size_t i = 1; i <= count; ++i) arguments[i] = va_arg(rest, char*);

extern "C" {

BY_API int execve(const char* path, char* const arguments[], char* const environment[]) noexcept {
  return real_execve(path, arguments, environment);
}

BY_API int execv(const char* path, char* const arguments[]) noexcept { return real_execve(path, arguments, environ); }

BY_API int execvp(const char* file, char* const arguments[]) noexcept { return real_execvpe(file, arguments, environ); }

BY_API int execvpe(const char* file, char* const arguments[], char* const environment[]) noexcept {
  return real_execvpe(file, arguments, environment);
}

BY_API int execl(const char* path, const char* argument, ...) noexcept {
  BLOCKYARD_LISTED_ARGUMENTS(argument, rest)
  va_end(rest);
  return real_execve(path, arguments, environ);
}

BY_API int execlp(const char* file, const char* argument, ...) noexcept {
  BLOCKYARD_LISTED_ARGUMENTS(argument, rest)
  va_end(rest);
  return real_execvpe(file, arguments, environ);
}

BY_API int execle(const char* path, const char* argument, ...) noexcept {
  BLOCKYARD_LISTED_ARGUMENTS(argument, rest)
  char* const* const environment = va_arg(rest, char* const*);
  va_end(rest);
  return real_execve(path, arguments, environment);
}

BY_API int fexecve(int file, char* const arguments[], char* const environment[]) noexcept {
  Strings given = arguments;
  asm("" : "+r"(given));  // the header promises that there are some; callers need not keep to it
  return become(given == nullptr || given[0] == nullptr ? "?" : given[0], environment,
                [=](Strings with) { return exec_functions().fexecve(file, arguments, with); });
}

BY_API int posix_spawn(pid_t* pid, const char* path, const posix_spawn_file_actions_t* actions,
                       const posix_spawnattr_t* attributes, char* const arguments[], char* const environment[]) {
  return start(pid, path, environment, [=](pid_t* into, Strings with) {
    return exec_functions().posix_spawn(into, path, actions, attributes, arguments, with);
  });
}

BY_API int posix_spawnp(pid_t* pid, const char* file, const posix_spawn_file_actions_t* actions,
                        const posix_spawnattr_t* attributes, char* const arguments[], char* const environment[]) {
  return start(pid, file, environment, [=](pid_t* into, Strings with) {
    return exec_functions().posix_spawnp(into, file, actions, attributes, arguments, with);
  });
}

}  // extern "C"
