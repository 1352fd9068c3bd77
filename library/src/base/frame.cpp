// The marks of frame.h, passed to the observer. The ends of frames are in library/src/lifetime.
#include "blockyard/frame.h"

#include "base/observer.hpp"

extern "C" {

void by_frame_mark(void) {
  if (const auto* listener = blockyard::base::observer()) listener->frame_mark();
}

void by_phase_mark(const char* name) {
  if (const auto* listener = blockyard::base::observer()) listener->phase_mark(name);
}

}  // extern "C"
