// A game that runs as many frames as each line of its input says. A frame allocates a block of 4,321 bytes, keeps the
// last ten of them, and ends by by_frame_end().
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <deque>

#include "blockyard/frame.h"

int main() {
  std::deque<void*> blocks;
  std::puts("ready");
  std::fflush(stdout);
  char line[32];
  for (ssize_t got = 0; (got = read(STDIN_FILENO, line, sizeof line - 1)) > 0;) {
    line[got] = '\0';
    for (int frame = std::atoi(line); frame > 0; --frame) {
      blocks.push_back(std::malloc(4321));
      if (blocks.size() > 10) {
        std::free(blocks.front());
        blocks.pop_front();
      }
      by_frame_end(0);
    }
    std::puts("done");
    std::fflush(stdout);
  }
  return 0;
}
