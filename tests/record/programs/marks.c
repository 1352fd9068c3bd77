// Marks frames and phases through libblockyard, linked statically: the recorder is found at run time.
#include <stdlib.h>

#include "blockyard/frame.h"

int main(void) {
  by_phase_mark("menu");
  for (int i = 0; i < 4; ++i) {
    free(malloc(150001));
    by_frame_mark();
  }
  by_phase_mark("level 1");
  for (int i = 0; i < 3; ++i) by_frame_end(1000000);
  return 0;
}
