// An engine with an allocator of its own in front of malloc, which says so through the C API.
#include <cstdlib>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "blockyard/journal.h"

namespace {

constexpr int threads = 3;
constexpr int blocks_each = 5000;
constexpr std::size_t arena_bytes = blocks_each * 64;

// A bump pointer in one block of malloc: its blocks lie where malloc's own block begins.
class Arena {
 public:
  explicit Arena(std::size_t bytes) : begin_(static_cast<char*>(std::malloc(bytes))), next_(begin_) {}
  ~Arena() { std::free(begin_); }
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;
  void* allocate(std::size_t size) {
    void* block = next_;
    next_ += (size + 15) / 16 * 16;
    by_journal_alloc(block, size, 16);
    return block;
  }
  void release(void* block) { by_journal_free(block); }

 private:
  char* begin_;
  char* next_;
};

void work(int number, Arena& arena) {
  by_journal_name_thread(("engine worker " + std::to_string(number)).c_str());
  for (int i = 0; i < blocks_each; ++i) {
    void* block = arena.allocate(40);
    if (i % 2 == 0) arena.release(block);
  }
}

}  // namespace

int main(int, char** arguments) {
  if (by_journal_close() == 0) return 1;
  by_journal_alloc(arguments, 1, 0);  // no journal is open: nothing happens
  if (by_journal_open(arguments[1]) != 0) return 2;
  if (by_journal_open(arguments[1]) == 0) return 3;
  by_phase_mark("load");
  Arena arenas[threads] = {Arena(arena_bytes), Arena(arena_bytes), Arena(arena_bytes)};
  std::vector<std::thread> workers;
  for (int i = 0; i < threads; ++i) workers.emplace_back(work, i, std::ref(arenas[i]));
  for (std::thread& worker : workers) worker.join();
  by_frame_mark();
  char memory[256];
  by_journal_alloc(memory, 100, 0);
  by_journal_realloc(memory, memory + 128, 50);
  by_journal_realloc(memory + 128, nullptr, 0);
  by_journal_realloc(nullptr, memory, 20);
  return by_journal_close() == 0 ? 0 : 4;
}
