// The marks of frame.h, handed to whoever listens. The ends of frames stand in library/src/lifetime.
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
