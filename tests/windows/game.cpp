// A game whose engine reports its blocks (journal.h): frames, a phase, two threads, a realloc. Its blocks come from the
// heap, by name. The second argument says how it ends.
#include <windows.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <vector>

#include "blockyard/frame.h"
#include "blockyard/heap.h"
#include "blockyard/journal.h"

namespace {

void* engine_allocate(std::size_t size) {
  void* const block = by_malloc(size);
  by_journal_alloc(block, size, 0);
  return block;
}

void engine_free(void* block) {
  by_journal_free(block);
  by_free(block);
}

void* engine_reallocate(void* old_block, std::size_t size) {
  void* const block = by_realloc(old_block, size);
  by_journal_realloc(old_block, block, size);
  return block;
}

}  // namespace

// Not static: a stripped program's exports would not name them.
[[gnu::noinline]] void spawn_bullets(std::vector<void*>& bullets) {
  for (int i = 0; i < 50; ++i) bullets.push_back(engine_allocate(48));
}

[[gnu::noinline]] void load_textures(int frames) {
  by_journal_name_thread("loader");
  for (int i = 0; i < frames; ++i) {
    void* texture = engine_allocate(4000);
    texture = engine_reallocate(texture, 8000);
    engine_free(texture);
  }
}

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  const char* const end = argv[2];
  if (by_journal_open(argv[1]) != 0) return 3;
  by_phase_mark("level 1");
  std::thread loader(load_textures, 100);
  std::vector<void*> bullets;
  for (int frame = 0; frame < 100; ++frame) {
    spawn_bullets(bullets);
    for (void* bullet : bullets) engine_free(bullet);
    bullets.clear();
    by_frame_mark();
  }
  loader.join();
  if (std::strcmp(end, "crash") == 0) {
    RaiseException(EXCEPTION_ACCESS_VIOLATION, EXCEPTION_NONCONTINUABLE, 0, nullptr);
  }
  if (std::strcmp(end, "killed") == 0) {
    Sleep(5'000);  // what reference/bounds.md says may be lost lies behind that
    TerminateProcess(GetCurrentProcess(), 9);
  }
  if (std::strcmp(end, "exit") == 0) std::exit(0);
  const int closed = by_journal_close();
  std::printf("closed: %d\n", closed);
  return closed == 0 ? 0 : 4;
}
