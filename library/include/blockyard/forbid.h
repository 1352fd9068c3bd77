/// Code that must not allocate says so: `blockyard budget` reports what is allocated between begin and end, under the
/// name given, with its call stack.
///
///   by_forbid_begin("audio callback");
///   mix();
///   by_forbid_end();
///
/// Nothing is refused and nothing stops. A forbidden stretch is two levels of the thread's tags (tag.h): BY_FORBIDDEN
/// and the name. So all that is said there holds: a program links and runs without Blockyard, threads are told apart, a
/// task that enters the path is held to it too, from the 65th level on nothing is seen, and `blockyard sites --by tag`
/// shows the stretch. Cost without a recorder: two loads and branches at each end.
#ifndef BLOCKYARD_FORBID_H
#define BLOCKYARD_FORBID_H

#include "blockyard/tag.h"

/// The level of a path of tags behind which the name of what must not allocate stands.
#define BY_FORBIDDEN "no allocation"

#ifdef __cplusplus
extern "C" {
#endif

/// The calling thread must not allocate from here on. `name` is UTF-8 without '/', neither NULL nor empty; it must stay
/// unchanged until by_forbid_end(). Stretches nest.
static inline void by_forbid_begin(const char* name) {
  by_tag_push(BY_FORBIDDEN);
  by_tag_push(name);
}

/// Ends what the calling thread began last. Tags that were pushed meanwhile must have been popped.
static inline void by_forbid_end(void) {
  by_tag_pop();
  by_tag_pop();
}

#ifdef __cplusplus
}
#endif
#endif
