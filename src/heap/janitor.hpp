// The one background thread: it populates memory before it is wanted and gives back what nobody wants any more.
#pragma once

namespace blockyard::heap {

/// Called by a thread that saw the reserve run low. Starts the janitor when there is none yet (the program has run for
/// a while by then, and the caller holds no lock and is in the middle of nothing), wakes it when it sleeps long. Cheap
/// otherwise: two loads.
void wake_janitor();

/// Called where starting a thread is safe: on the slow path of an allocation before it has touched anything.
void start_janitor_if_due();

/// The fork handlers' part: in the child there is no janitor until it is wanted again.
void forget_janitor();

/// From here on a janitor may be started: the C library is ready for threads.
void allow_janitor();

}  // namespace blockyard::heap
