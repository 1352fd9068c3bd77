// What fork handling needs of rewindable arenas.
#pragma once

namespace blockyard::lifetime {

void lock_arenas_for_fork();
void unlock_arenas_after_fork();

}  // namespace blockyard::lifetime
