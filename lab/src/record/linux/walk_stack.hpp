// What walk_stack() keeps of a thread.
#pragma once

#include "record/linux/recorder.hpp"

namespace blockyard::record {

/// Of the slot's next thread, which takes the walker over; nullptr: no stacks.
unwind::Walker* walker_of(Slot& slot);
/// Its thread has ended or left.
void end_walks(Slot& slot);
/// A forked child starts anew: a thread that the child does not have may have been in the middle of a walk.
void forget_walks();
/// The collector knows of no object from this thread.
void forget_reported();

}  // namespace blockyard::record
