// budget-audio EXTRA [CODE [PHASE]]: ten frames of a main thread and an audio thread, which has allocated all it needs
// before the phase "play" begins, and then allocates only in frame EXTRA; 0 is none. Ends with exit code CODE. The
// phase begins with the first frame, or within frame PHASE; 0 is before the first.
#include <pthread.h>

#include <cstdlib>

#include "blockyard/frame.h"

namespace {

constexpr int frames = 10;
constexpr int sounds = 3;
int extra = 0;
pthread_barrier_t begins;
pthread_barrier_t ends;

__attribute__((noinline)) void mix() { std::free(std::malloc(4'321)); }

void* play(void*) {
  pthread_setname_np(pthread_self(), "audio-1");
  mix();
  void* kept[sounds];
  for (void*& sound : kept) sound = std::malloc(10'000);
  for (int frame = 0; frame <= frames; ++frame) {
    pthread_barrier_wait(&begins);
    if (frame == extra && extra != 0) mix();
    pthread_barrier_wait(&ends);
  }
  pthread_barrier_wait(&begins);  // after the last frame
  for (void* sound : kept) std::free(sound);
  return nullptr;
}

}  // namespace

int main(int count, char** arguments) {
  extra = count > 1 ? std::atoi(arguments[1]) : 0;
  const int phase = count > 3 ? std::atoi(arguments[3]) : -1;
  pthread_barrier_init(&begins, nullptr, 2);
  pthread_barrier_init(&ends, nullptr, 2);
  pthread_t audio{};
  if (pthread_create(&audio, nullptr, play, nullptr) != 0) return 2;
  void* kept = nullptr;
  for (int frame = 0; frame <= frames; ++frame) {
    pthread_barrier_wait(&begins);
    pthread_barrier_wait(&ends);
    if (frame == 5) kept = std::malloc(1'000);
    if (frame == phase) by_phase_mark("play");
    std::free(std::malloc(100));
    // The first mark ends no frame: it begins the first one.
    by_frame_mark();
    if (frame == 0 && phase < 0) by_phase_mark("play");
  }
  pthread_barrier_wait(&begins);
  pthread_join(audio, nullptr);
  std::free(kept);
  return count > 2 ? std::atoi(arguments[2]) : 0;
}
