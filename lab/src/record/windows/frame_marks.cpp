// The marks of frame.h, for a program that does not link the library. An object of its own: a program that links both
// has one of each function, and the library's comes here too.
#include "blockyard/frame.h"
#include "record/windows/recorder.hpp"

extern "C" {

BY_API void by_frame_mark(void) { blockyard::record::mark_frame(); }

BY_API void by_phase_mark(const char* name) { blockyard::record::mark_phase(name); }

}  // extern "C"
