// A program to attach to. `commands`: does what the lines of its input say, and answers each. `busy PLUGIN`: threads
// allocate hard, throw, fork, load a library, and keep values in vector registers until the input ends; it then prints
// whether all was as it should be. `join`: waits for threads on stacks of 64 KiB, which have
// no room for a call, to end.
#include <dlfcn.h>
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace {

std::atomic<bool> stop{false};
std::atomic<int> failures{0};
std::atomic<long> rounds[5];

void fail(const char* what) {
  std::fprintf(stderr, "wrong: %s\n", what);
  ++failures;
}

void allocate() {
  unsigned random = 1;
  std::vector<std::pair<unsigned char*, std::size_t>> blocks(200);
  while (!stop) {
    random = random * 1664525 + 1013904223;
    auto& [block, bytes] = blocks[random >> 16 & 127];
    if (block != nullptr && (block[0] != (bytes & 255) || block[bytes - 1] != (bytes & 255))) fail("a block");
    if ((random & 7) == 0 && block != nullptr) {
      bytes += 16;
      block = static_cast<unsigned char*>(std::realloc(block, bytes));
    } else {
      std::free(block);
      bytes = 1 + (random >> 8 & 2047);
      block = static_cast<unsigned char*>(std::malloc(bytes));
    }
    block[0] = block[bytes - 1] = static_cast<unsigned char>(bytes);
    ++rounds[0];
  }
  for (auto& [block, bytes] : blocks) std::free(block);
}

void throw_and_catch() {
  while (!stop) {
    try {
      throw std::runtime_error(std::string(100, 'x'));
    } catch (const std::exception& error) {
      if (std::strlen(error.what()) != 100) fail("an exception");
    }
    ++rounds[1];
  }
}

void fork_and_wait() {
  while (!stop) {
    const pid_t child = fork();
    if (child == 0) {
      void* block = std::malloc(100);
      std::free(block);
      _exit(7);
    }
    int status = 0;
    if (child > 0 && (waitpid(child, &status, 0) != child || !WIFEXITED(status) || WEXITSTATUS(status) != 7)) {
      fail("a child");
    }
    ++rounds[2];
    usleep(1000);
  }
}

void load(const char* plugin) {
  while (!stop) {
    void* library = dlopen(plugin, RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr || dlsym(library, "plugin_work") == nullptr) fail("a library");
    if (library != nullptr) dlclose(library);
    ++rounds[3];
  }
}

#if defined(__x86_64__)
__attribute__((target("avx"))) bool keeps_registers() {
  static const float values[8] = {1, 2, 3, 4, 5, 6, 7, 8};
  float after[8] = {};
  // All of it in registers, the red zone in use.
  asm volatile(
      "vmovups %1, %%ymm7\n"
      "movq $0x1234567, -64(%%rsp)\n"
      "movl $200000, %%ecx\n"
      "1: cmpq $0x1234567, -64(%%rsp)\n"
      "jne 2f\n"
      "decl %%ecx\n"
      "jnz 1b\n"
      "vmovups %%ymm7, %0\n"
      "2: vzeroupper\n"
      : "=m"(after)
      : "m"(values)
      : "xmm7", "rcx", "memory", "cc");
  return std::memcmp(values, after, sizeof values) == 0;
}
#else
bool keeps_registers() { return true; }
#endif

void compute() {
  while (!stop) {
    if (!keeps_registers()) fail("registers");
    ++rounds[4];
  }
}

int run_busy(const char* plugin) {
  std::vector<std::thread> threads;
  threads.emplace_back(allocate);
  threads.emplace_back(throw_and_catch);
  threads.emplace_back(fork_and_wait);
  threads.emplace_back([plugin] { load(plugin); });
  threads.emplace_back(compute);
  std::puts("ready");
  std::fflush(stdout);
  char byte = 0;
  while (read(STDIN_FILENO, &byte, 1) > 0) {
  }
  stop = true;
  for (std::thread& thread : threads) thread.join();
  for (const auto& count : rounds) {
    if (count == 0) fail("a thread did nothing");
  }
  std::printf("%d failures\n", failures.load());
  return failures == 0 ? 0 : 1;
}

int run_join() {
  pthread_attr_t small;
  pthread_attr_init(&small);
  pthread_attr_setstacksize(&small, 64 << 10);
  pthread_t threads[2];
  for (pthread_t& thread : threads) {
    const auto allocate_now_and_then = [](void*) -> void* {
      for (;; usleep(1000)) std::free(std::malloc(48));
    };
    if (pthread_create(&thread, &small, allocate_now_and_then, nullptr) != 0) return 2;
  }
  std::puts("ready");
  std::fflush(stdout);
  for (const pthread_t thread : threads) pthread_join(thread, nullptr);
  return 0;
}

// `allocate N BYTES`, `free N` of the blocks that were allocated last, `grow N BYTES` of those, `load PATH`, `call N`
// of that library's work, `wait MS` for nothing.
int run_commands() {
  std::vector<void*> blocks;
  void* library = nullptr;
  std::puts("ready");
  std::fflush(stdout);
  char line[4096];
  std::size_t held = 0;
  // Without stdio, whose buffers are allocated.
  while (read(STDIN_FILENO, line + held, 1) == 1) {
    if (line[held++] != '\n') continue;
    line[held - 1] = '\0';
    held = 0;
    int count = 0;
    unsigned long bytes = 0;
    if (std::sscanf(line, "allocate %d %lu", &count, &bytes) == 2) {
      blocks.reserve(blocks.size() + static_cast<std::size_t>(count));
      for (int i = 0; i < count; ++i) blocks.push_back(std::malloc(bytes));
    } else if (std::sscanf(line, "free %d", &count) == 1) {
      for (int i = 0; i < count; ++i, blocks.pop_back()) std::free(blocks.back());
    } else if (std::sscanf(line, "grow %d %lu", &count, &bytes) == 2) {
      for (int i = 1; i <= count; ++i) {
        void*& block = blocks[blocks.size() - static_cast<std::size_t>(i)];
        block = std::realloc(block, bytes);
      }
    } else if (std::strncmp(line, "load ", 5) == 0) {
      library = dlopen(line + 5, RTLD_NOW | RTLD_LOCAL);
    } else if (std::sscanf(line, "call %d", &count) == 1 && library != nullptr) {
      const auto work = reinterpret_cast<void (*)()>(dlsym(library, "plugin_work"));
      for (int i = 0; i < count; ++i) work();
    } else if (std::sscanf(line, "wait %d", &count) == 1) {
      const int nothing = epoll_create1(EPOLL_CLOEXEC);
      epoll_event event{};
      if (epoll_wait(nothing, &event, 1, count) != 0) std::puts("interrupted");
      close(nothing);
    }
    std::puts("done");
    std::fflush(stdout);
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 3 && std::strcmp(argv[1], "busy") == 0) return run_busy(argv[2]);
  if (argc == 2 && std::strcmp(argv[1], "commands") == 0) return run_commands();
  if (argc == 2 && std::strcmp(argv[1], "join") == 0) return run_join();
  return 2;
}
