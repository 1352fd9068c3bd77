// budget-forbidden COUNT [FILE]: an audio callback that must not allocate, and does so COUNT times; with FILE only
// where that file is missing, which it then writes. Frees there, and allocations elsewhere, are no matter. It links
// neither the library nor the recorder.
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <thread>

#include "blockyard/forbid.hpp"
#include "blockyard/tag.hpp"

namespace {

__attribute__((noinline)) void mix(int count) {
  for (int at = 0; at < count; ++at) std::free(std::malloc(1'234));
}

}  // namespace

int main(int count, char** arguments) {
  int wanted = count > 1 ? std::atoi(arguments[1]) : 0;
  const char* const cache = count > 2 ? arguments[2] : nullptr;
  if (cache != nullptr && access(cache, F_OK) == 0) wanted = 0;
  void* const before = std::malloc(100);
  const blockyard::tag physics("physics");
  std::thread audio([&] {
    const blockyard::no_allocation here("audio callback");
    mix(wanted);
    std::free(before);
  });
  mix(3);
  audio.join();
  by_forbid_begin("kept");
  by_forbid_end();
  if (cache != nullptr) std::fclose(std::fopen(cache, "w"));
  return 0;
}
