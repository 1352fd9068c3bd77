// Why: with BLOCKYARD_HEAP_GUARD=1 a block that is sampled lies between pages that nobody may touch. Here every block
// is sampled; each mistake ends a child with a report that names it, the block's size and who allocated and freed it.
#include <malloc.h>
#include <sys/wait.h>

#include <array>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "behaviour.hpp"

// Named as functions of the library are: a report's stack begins with it all the same.
extern "C" [[gnu::noinline]] void by_age(void* block) {
  std::free(block);
  __asm__ volatile("");
}

namespace {

using behaviour::require;

constexpr std::size_t page = 4096;
constexpr std::size_t size = 64;

char* hidden(void* pointer) {
  __asm__ volatile("" : "+r"(pointer) : : "memory");
  return static_cast<char*>(pointer);
}

// A sampled block at the end of its page, or at its beginning: which one it is chance says.
char* block_at(bool end) {
  for (int turn = 0; turn < 100; ++turn) {
    char* const block = hidden(std::malloc(size));
    if ((reinterpret_cast<std::uintptr_t>(block) + (end ? size : 0)) % page == 0) {
      return block;
    }
  }
  require(false, "no block lies at the edge of a page");
  return nullptr;
}

void read_from(const char* place) { static_cast<void>(*static_cast<const volatile char*>(place)); }

// How a child ends.
int status_of(void (*child_does)()) {
  const pid_t child = fork();
  require(child >= 0, "fork fails");
  if (child == 0) {
    behaviour::end_with_parent();
    child_does();
    _exit(0);
  }
  int status = 0;
  require(waitpid(child, &status, 0) == child, "a child can't be waited for");
  return status;
}

// What a child that makes a mistake says before it ends.
std::string report_of(const std::function<void()>& mistake) {
  std::array<int, 2> ends{};
  require(pipe(ends.data()) == 0, "no pipe");
  const pid_t child = fork();
  require(child >= 0, "fork fails");
  if (child == 0) {
    behaviour::end_with_parent();
    dup2(ends[1], STDERR_FILENO);
    mistake();
    _exit(0);
  }
  close(ends[1]);
  std::array<char, 16384> text{};
  std::size_t length = 0;
  for (ssize_t count = 0; (count = read(ends[0], text.data() + length, text.size() - length)) > 0;) {
    length += static_cast<std::size_t>(count);
  }
  close(ends[0]);
  int status = 0;
  require(waitpid(child, &status, 0) == child, "a child can't be waited for");
  require(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT, "a mistake goes unnoticed");
  return {text.data(), length};
}

void require_report(const std::function<void()>& mistake, const std::vector<const char*>& parts) {
  const std::string report = report_of(mistake);
  for (const char* part : parts) {
    if (report.find(part) == std::string::npos) {
      std::fprintf(stderr, "%s\nlacks \"%s\"\n", report.c_str(), part);
      require(false, "a report does not say what happened");
    }
  }
}

}  // namespace

int main() {
  if (std::getenv("BLOCKYARD_HEAP_GUARD") == nullptr) {
    setenv("BLOCKYARD_HEAP_GUARD", "1", 1);
    setenv("BLOCKYARD_HEAP_GUARD_SAMPLE", "1", 1);
    execl("/proc/self/exe", "heap_sampled_guard_pages", nullptr);
    return 1;
  }
  constexpr const char* bytes = "the block has 64 bytes";
  constexpr const char* by = "allocated by thread";
  require_report([] { read_from(block_at(true) + size); }, {"beyond the end of a block was touched", bytes, by});
  require_report([] { read_from(block_at(false) - 1); }, {"before the beginning of a block was touched", bytes, by});
  require_report(
      [] {
        char* const block = block_at(true);
        std::thread([=] { std::free(block); }).join();
        read_from(hidden(block));
      },
      {"touched after it was freed", bytes, by, "freed by thread"});
  require_report(
      [] {
        char* const block = block_at(true);
        std::free(block);
        std::free(hidden(block));
      },
      {"freed already", bytes, "freed by thread"});
  require_report(
      [] {
        char* const block = block_at(true);
        by_age(block);
        by_age(hidden(block));
      },
      {", at\n    by_age"});
  require_report([] { std::free(hidden(block_at(true)) + 16); }, {"the middle of a block", bytes});
  require_report([] { static_cast<void>(hidden(std::realloc(hidden(block_at(true)) + 16, 10))); },
                 {"the middle of a block", bytes});
  require_report(
      [] {
        char* const block = block_at(false);
        block[size] = 'x';
        std::free(block);
      },
      {"written behind the end of a block", bytes, by});
  require_report(
      [] {
        char* const block = block_at(true);
        block[-1] = 'x';
        std::free(block);
      },
      {"written before the beginning of a block", bytes, by});
  // Blocks of many pages, and those of none.
  constexpr std::size_t many = 25 * page;
  const auto large = [] { return hidden(std::malloc(many)); };
  require_report([=] { read_from(large() + many); }, {"beyond the end of a block was touched", "102400 bytes"});
  require_report(
      [=] {
        char* const block = large();
        std::free(block);
        read_from(hidden(block) + 50'000);
      },
      {"touched after it was freed", "102400 bytes", "freed by thread"});
  require_report([] { read_from(hidden(std::malloc(0))); },
                 {"beyond the end of a block was touched", "the block has 0 bytes"});
  // Faults that are not ours end the program as they would without the guard, and signals that were sent as well.
  const int sent = status_of([] { raise(SIGSEGV); });
  require(WIFSIGNALED(sent) && WTERMSIG(sent) == SIGSEGV, "a signal that was sent is swallowed");
  const int fault = status_of([] { read_from(hidden(nullptr)); });
  require(WIFSIGNALED(fault) && WTERMSIG(fault) == SIGSEGV, "a fault of the program's own does not end it");
  // Correct programs live with it, also when all pages are taken.
  std::vector<char*> blocks;
  for (std::size_t each = 1; each < 2'000; ++each) {
    blocks.push_back(hidden(std::malloc(each)));
    std::memset(blocks.back(), 1, each);
    require(malloc_usable_size(blocks.back()) == each, "a guarded block has more room than was asked for");
  }
  for (std::size_t each = 1; each < 2'000; ++each) {
    char* const block = blocks[each - 1] = hidden(std::realloc(blocks[each - 1], 3 * each));
    for (std::size_t byte = 0; byte < each; ++byte) {
      require(block[byte] == 1, "realloc loses contents");
    }
  }
  std::thread([&] {
    for (char* block : blocks) {
      std::free(block);
    }
  }).join();
  for (std::size_t alignment = 16; alignment <= 1u << 20; alignment *= 2) {
    char* const block = hidden(memalign(alignment, 100));
    require(reinterpret_cast<std::uintptr_t>(block) % alignment == 0, "a guarded block is not aligned");
    std::free(block);
  }
  behaviour::require_sound_heap();
}
