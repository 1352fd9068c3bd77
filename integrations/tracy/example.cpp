// A game instrumented for Tracy and for nothing else. It frees a block that it never announced, as code does whose
// driver allocates by other means.
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <new>
#include <string>
#include <thread>
#include <vector>

#include "blockyard_tracy.hpp"

static std::atomic<int> announced{0};

void* operator new(std::size_t size) {
  void* const block = std::malloc(size);
  if (block == nullptr) throw std::bad_alloc();
  TracyAlloc(block, size);
  ++announced;
  return block;
}
void operator delete(void* block) noexcept {
  TracyFree(block);
  std::free(block);
}
void operator delete(void* block, std::size_t) noexcept { operator delete(block); }

namespace {

char memory[1 << 16];
// The compiler may leave out a pair of new and delete that nobody looks at.
void* volatile seen = nullptr;

void physics() {
  ZoneScoped;
  ZoneText("text", 4);
  ZoneValue(3);
  std::vector<char> contacts(1234);
  seen = contacts.data();
  ZoneNamedN(solver, "solver", true);
  std::vector<char> islands(2345);
  seen = islands.data();
}

void draw(int frame) {
  ZoneScopedNC("draw", 0xff0000);
  const std::string name = "pass " + std::to_string(frame);
  ZoneTransientN(pass, name.c_str(), true);
  TracyAllocN(memory, 4096, "shaders");
  TracyAllocN(memory, 512, "network");
  announced += 2;
  TracyFreeN(memory, "network");
  TracyFreeN(memory, "shaders");
}

}  // namespace

int main() {
  for (int frame = 0; frame < 3; ++frame) {
    physics();
    std::thread([frame] { draw(frame); }).join();
    FrameMarkStart("physics");
    FrameMarkEnd("physics");
    FrameMark;
  }
  int mixed = 0;
  TracyFree(&mixed);
  TracyPlot("left", 1.0);
  std::printf("%d\n", announced.load());
}
