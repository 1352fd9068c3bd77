// Hooks that sleep: in place from the program's start, and passed through until somebody wakes them. Then, no ptrace is
// needed: the program shares a page with whoever may open its file.
#pragma once

#include <cstdint>

namespace blockyard::record {

/// The turn of recording that calls belong to: that of the page, or, in a program without one, `attached_turn` itself.
extern const std::uint32_t* wanted_turn;
/// The turn that was begun last, or could not be.
extern std::uint32_t attached_turn;

/// Begins the wanted turn. False where nothing is to be recorded. Keeps errno.
bool wake_up();

/// Whether a call is to pass through. At most a nanosecond while it is.
inline bool is_asleep() {
  const std::uint32_t wanted = __atomic_load_n(wanted_turn, __ATOMIC_ACQUIRE);
  if (__builtin_expect(wanted == attached_turn, 1)) return false;
  return wanted == 0 || !wake_up();
}

/// Makes the page in this folder, under the process's number. Before the program has threads.
void fall_asleep(const char* folder);

}  // namespace blockyard::record
