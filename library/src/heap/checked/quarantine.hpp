// The quarantine of the checked heap, one for all threads (checks/quarantine.hpp).
#pragma once

#include <cstddef>
#include <cstdint>

namespace blockyard::heap::checked {

/// A freed block in quarantine: as the plain heap knows it, and the bytes that were the program's.
struct Waiting {
  void* plain = nullptr;
  unsigned char* block = nullptr;
  std::size_t size = 0;
  std::size_t guarded_bytes = 0;  ///< of a guarded block: bytes from `plain` that nobody may touch, its guard included
  bool poisoned = true;           ///< it holds poison; else all its pages are among those that nobody may touch
  bool of_arena = false;          ///< it is of an arena, which may be destroyed
};

inline constexpr std::size_t most_waiting = 1024;  ///< blocks
inline constexpr std::size_t most_waiting_bytes = std::size_t{16} << 20;

/// Takes a freed block in. Returns the oldest one when that makes too many, to be called again until it returns none
/// (plain == nullptr); the first call brings `block`, later ones an empty one. Thread-safe.
Waiting enter_quarantine(const Waiting& block);

/// The oldest block, out of turn; none when the quarantine is empty.
Waiting leave_quarantine();
/// Blocks that wait, racy: those of arenas that do so now are among the first so many to leave.
std::size_t blocks_in_quarantine();

/// Takes a block that has just left in once more, as the newest: the system refused to make its pages accessible. No
/// block of an arena. Where memory is exhausted its pages are nobody's for good.
void stay_in_quarantine(const Waiting& block);

/// To be called with every block that one of these returned, once it is back in its heap.
void has_left_quarantine(const Waiting& block);
/// Returns when every block of an arena that had left is back in its heap: until then the heap must not go.
void wait_until_all_have_left();

/// Around fork: no thread is inside meanwhile.
void lock_quarantine();
void unlock_quarantine();
/// In the child, where the threads that were giving blocks back are gone.
void unlock_quarantine_in_child();

}  // namespace blockyard::heap::checked
