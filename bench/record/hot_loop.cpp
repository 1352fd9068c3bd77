// A program that never pauses: frees one of 1,000 live blocks at random and allocates another in its place, from a
// shallow stack, a deep one, or one of 4,096. Prints the nanoseconds that an event took.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>

namespace {

void* live[1000];
std::uint64_t seed = 88172645463325252u;

std::uint32_t next() {
  seed ^= seed << 13;
  seed ^= seed >> 7;
  seed ^= seed << 17;
  return static_cast<std::uint32_t>(seed >> 33);
}

[[gnu::noinline]] void replace(std::uint32_t random) {
  void*& block = live[random % 1000];
  std::free(block);
  block = std::malloc(16 + random % 500);
  *static_cast<volatile char*>(block) = 1;
}

volatile int depth_left;

[[gnu::noinline]] void deep(int frames, std::uint32_t random) {
  if (frames == 0) {
    replace(random);
  } else {
    deep(frames - 1, random);
  }
  depth_left = frames;  // no tail call
}

void left(int frames, std::uint32_t random);
void right(int frames, std::uint32_t random);

void branch(int frames, std::uint32_t random) {
  if (frames == 0) {
    replace(random);
  } else if ((random >> frames & 1) != 0) {
    left(frames - 1, random);
  } else {
    right(frames - 1, random);
  }
}
[[gnu::noinline]] void left(int frames, std::uint32_t random) {
  branch(frames, random);
  depth_left = frames;
}
[[gnu::noinline]] void right(int frames, std::uint32_t random) {
  branch(frames, random);
  depth_left = -frames;
}

double now_ns() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<double>(now.tv_sec) * 1e9 + static_cast<double>(now.tv_nsec);
}

}  // namespace

int main(int count, char** arguments) {
  const char* stacks = count > 1 ? arguments[1] : "shallow";
  const long pairs = count > 2 ? std::atol(arguments[2]) : 3'000'000;
  const double begin = now_ns();
  for (long i = 0; i < pairs; ++i) {
    const std::uint32_t random = next();
    if (std::strcmp(stacks, "shallow") == 0) {
      replace(random);
    } else if (std::strcmp(stacks, "deep") == 0) {
      deep(40, random);
    } else {
      branch(12, random);
    }
  }
  std::printf("%.3f\n", (now_ns() - begin) / (2.0 * static_cast<double>(pairs)));
  return 0;
}
