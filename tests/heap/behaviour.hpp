// What the behaviour programs share. Each runs on libblockyard-malloc.so put under it by LD_PRELOAD, as a user would.
//
// None has a time limit of its own, which a slow machine, or one that was stopped, would miss: each waits for what it
// waits for, and what never comes is the runner's to end.
#pragma once

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "blockyard/heap.h"

// Weak: the program itself is linked against nothing of Blockyard's, the preloaded library supplies them.
#pragma weak by_heap_check
#pragma weak by_heap_get_statistics
#pragma weak by_heap_set

namespace behaviour {

/// Ends the test as failed with a sentence unless `holds`.
inline void require(bool holds, const char* sentence) {
  if (!holds) {
    std::fprintf(stderr, "FAILED: %s\n", sentence);
    std::_Exit(1);
  }
}

/// The heap under test is really there, and every invariant holds. No other thread may be allocating.
inline void require_sound_heap() {
  require(by_heap_check != nullptr, "libblockyard-malloc.so is not under this program");
  const char* const broken = by_heap_check();
  require(broken == nullptr, broken == nullptr ? "" : broken);
}

/// In a forked child, right after the fork: it ends when the test does, so that one that hangs outlives it not.
inline void end_with_parent() { prctl(PR_SET_PDEATHSIG, SIGKILL); }

/// A janitor starts with one of the next calls, although the program is small.
inline void ask_for_a_janitor() {
  require(by_heap_set != nullptr && by_heap_set(BY_HEAP_JANITOR, 1) == 0, "the janitor can't be asked for");
}

/// The janitor's thread; 0: there is none.
inline int thread_of_the_janitor() {
  int found = 0;
  DIR* const tasks = opendir("/proc/self/task");
  require(tasks != nullptr, "the process's threads can't be listed");
  while (const dirent* const task = readdir(tasks)) {
    char path[sizeof "/proc/self/task//comm" + sizeof task->d_name];
    std::snprintf(path, sizeof path, "/proc/self/task/%s/comm", task->d_name);
    char name[16] = {};
    const int file = open(path, O_RDONLY);
    if (file >= 0 && read(file, name, sizeof name - 1) > 0 && std::strcmp(name, "by-janitor\n") == 0) {
      found = std::atoi(task->d_name);
    }
    close(file);
  }
  closedir(tasks);
  return found;
}

struct Rest {
  bool asleep = false;  ///< at this moment
  long naps = 0;        ///< how often it has gone to sleep since it was started
};

/// Of one of the process's threads. Allocates nothing.
inline Rest rest_of(int thread) {
  char text[4096] = {};
  std::snprintf(text, sizeof text, "/proc/self/task/%d/status", thread);
  const int file = open(text, O_RDONLY);
  require(file >= 0 && read(file, text, sizeof text - 1) > 0, "a thread's state can't be read");
  close(file);
  Rest rest{.asleep = std::strstr(text, "\nState:\tS") != nullptr};
  const char* const line = std::strstr(text, "\nvoluntary_ctxt_switches:");
  require(line != nullptr && std::sscanf(line, "\nvoluntary_ctxt_switches: %ld", &rest.naps) == 1,
          "how often a thread slept can't be read");
  return rest;
}

/// Of the process, in bytes. Not from statm, whose pages qemu takes for the machine's. Allocates nothing.
inline std::size_t resident_bytes() {
  char text[4096] = {};
  const int file = open("/proc/self/status", O_RDONLY);
  require(file >= 0 && read(file, text, sizeof text - 1) > 0, "the process's state can't be read");
  close(file);
  std::size_t kib = 0;
  const char* const line = std::strstr(text, "\nVmRSS:");
  require(line != nullptr && std::sscanf(line, "\nVmRSS: %zu kB", &kib) == 1, "resident memory can't be read");
  return kib * 1024;
}

inline by_heap_statistics statistics() {
  by_heap_statistics values{};
  by_heap_get_statistics(&values);
  return values;
}

}  // namespace behaviour
