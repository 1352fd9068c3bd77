/// Tags: names for what a thread is doing, such as "physics". A recorder writes them down with every allocation and
/// free, and `blockyard sites --by tag` adds up what each of them allocates.
///
///   by_tag_push("physics");
///   by_tag_push("broadphase");  // from here on the thread's tag is "physics/broadphase"
///   by_tag_pop();
///   by_tag_pop();
///
/// A program that includes this header links and runs without Blockyard: the functions below do nothing unless a
/// recorder was preloaded (`blockyard record`) or linked (journal.h). With Clang, a program at fixed addresses
/// (-no-pie) must link libblockyard-record or do without tags.
///
/// Tags belong to a thread, and a signal handler that pops what it pushed may use them. Cost: about a nanosecond while
/// nothing records, else about 20, without a lock and without a system call, except where the recorder cannot keep up.
/// Nothing allocates, and errno is kept. Tags whose recording begins later are written down, too.
#ifndef BLOCKYARD_TAG_H
#define BLOCKYARD_TAG_H

#include <stdint.h>

#include "blockyard/detail/visibility.h"

#ifdef __cplusplus
extern "C" {
#endif

/// All tags of a thread at one moment, to be carried to another thread. Number 0 is no tag. Valid in the process and in
/// children that it forks, for as long as they run.
typedef struct by_tag_path {
  uint32_t number;
} by_tag_path;

/// What a recorder exports. Call the functions below instead: these are missing while there is none.
#if defined(BY_WEAK)
BY_API BY_WEAK void by_recorder_tag_push(const char* name);
BY_API BY_WEAK void by_recorder_tag_pop(void);
BY_API BY_WEAK uint32_t by_recorder_tag_current(void);
BY_API BY_WEAK void by_recorder_tag_enter(uint32_t path);
#else
static void (*const by_recorder_tag_push)(const char* name) = 0;
static void (*const by_recorder_tag_pop)(void) = 0;
static uint32_t (*const by_recorder_tag_current)(void) = 0;
static void (*const by_recorder_tag_enter)(uint32_t path) = 0;
#endif

/// Adds a level to the calling thread's tags. `name` is UTF-8, of which 232 bytes are kept; it must stay unchanged
/// until the level is popped. A '/' in it begins another level of the path, NULL and "" add none. From the 65th level
/// on, and beyond about 16,000 different paths in a process, the path stays as it is.
static inline void by_tag_push(const char* name) {
  if (by_recorder_tag_push) by_recorder_tag_push(name);
}

/// Removes the last level that was pushed or entered. Without one it does nothing.
static inline void by_tag_pop(void) {
  if (by_recorder_tag_pop) by_recorder_tag_pop();
}

/// The calling thread's tags. Number 0 without a recorder, too.
static inline by_tag_path by_tag_current(void) {
  by_tag_path path = {0};
  if (by_recorder_tag_current) path.number = by_recorder_tag_current();
  return path;
}

/// Adds a level at which the calling thread has the tags of another thread instead of its own, for a task that was
/// handed over. A path that by_tag_current() did not return counts as no tag.
static inline void by_tag_enter(by_tag_path path) {
  if (by_recorder_tag_enter) by_recorder_tag_enter(path.number);
}

#ifdef __cplusplus
}
#endif
#endif
