// One case per process: what a program may do before main, at its end, and around fork. teardown_test.cpp runs each
// case and checks how it ended.
#include <pthread.h>
#include <unistd.h>

#if __has_include(<sys/wait.h>)
#include <sys/time.h>
#include <sys/wait.h>
#endif

#include <array>
#include <atomic>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "blockyard/block_allocator.hpp"
#include "blockyard/hash_map.hpp"
#include "blockyard/list.hpp"
#include "expect.hpp"

namespace {

using namespace blockyard;

using Blocks = StaticBlockAllocator<200, 8>;

// --- before main and after it ---

struct Early {
  List<std::string> list;
  HashMap<int, std::string> map;
  Early() { fill(); }
  ~Early() {
    fill();  // a static destructor still allocates, and members end after it
  }
  void fill() {
    for (int i = 0; i < 1000; ++i) {
      list.push_back(std::to_string(i));
      map.insert(i, "a text too long for the string itself");
    }
  }
};
__attribute__((init_priority(101))) Early early;

void at_exit() {
  List<int> list;
  for (int i = 0; i < 100; ++i) {
    list.push_back(i);
  }
  void* const block = Blocks::allocate();
  Blocks::free(block);
  early.list.push_back("from atexit");
}

void case_before_main_and_at_exit() {
  expect(early.list.size() == 1000 && early.map.invariants_hold(), "filled before main");
  std::atexit(at_exit);
}

// --- ends of threads ---

struct AtThreadEnd {
  List<int> list;
  ~AtThreadEnd() {
    for (int i = 0; i < 1000; ++i) {
      list.push_back(i);
    }
  }
};

pthread_key_t late_key;
void after_thread_locals(void*) {
  // May run after the library has parked the thread's state.
  for (int i = 0; i < 100; ++i) {
    Blocks::free(Blocks::allocate());
  }
  static std::atomic<int> again{0};
  if (again++ < 2) {
    pthread_setspecific(late_key, &late_key);
  }
}

void case_thread_local_destructors() {
  pthread_key_create(&late_key, after_thread_locals);
  for (int round = 0; round < 20; ++round) {
    std::thread([] {
#if !defined(__SANITIZE_THREAD__)  // which ends its own state before these run
      pthread_setspecific(late_key, &late_key);
#endif
      thread_local AtThreadEnd ends;
      ends.list.push_back(1);
    }).join();
  }
  expect(Blocks::statistics().live_blocks == 0, "late destructors freed all");
}

void case_detached_thread_at_exit() {
  static std::atomic<bool> started{false};
  std::thread([] {
    for (;;) {
      List<std::string> list{"a", "b"};
      started = true;
    }
  }).detach();
  while (!started) {
    std::this_thread::yield();
  }
  std::exit(0);  // static destructors run while the thread allocates
}

#if __has_include(<sys/wait.h>)
// --- fork ---

void case_fork() {
  std::atomic<bool> stop{false};
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t) {
    threads.emplace_back([&] {
      while (!stop) {
        std::array<void*, 300> taken;
        for (void*& block : taken) {
          block = Blocks::allocate();
        }
        for (void* const block : taken) {
          Blocks::free(block);
        }
#if !defined(__SANITIZE_ADDRESS__)  // whose own malloc, which starting a thread calls, may stay locked in a child
        std::thread([] { Blocks::free(Blocks::allocate()); }).join();
#endif
      }
    });
  }
  void* foreign = nullptr;
  std::thread([&] { foreign = StaticBlockAllocator<216, 8>::allocate(); }).join();
  std::vector<void*> mine;
  for (int i = 0; i < 1000; ++i) {
    mine.push_back(Blocks::allocate());
  }
  for (int round = 0; round < 30; ++round) {
    const pid_t child = fork();
    if (child == 0) {
      for (void* const block : mine) {
        Blocks::free(block);
      }
      StaticBlockAllocator<216, 8>::free(foreign);
      List<std::string> list;
      for (int i = 0; i < 5000; ++i) {
        list.push_back("a text too long for the string itself");
      }
#if defined(__SANITIZE_THREAD__)  // which allows no thread in a child
      list.clear();
#else
      std::thread([&] { list.clear(); }).join();
#endif
      std::_Exit(list.is_empty() ? 0 : 1);
    }
    int status = 0;
    expect(waitpid(child, &status, 0) == child && status == 0, "the child ended well");
  }
  stop = true;
  for (std::thread& thread : threads) {
    thread.join();
  }
}

// POSIX allows it, also where the signal interrupted an allocation that holds a lock of the pools.
volatile std::sig_atomic_t forks = 0;
volatile std::sig_atomic_t failed_forks = 0;

void fork_here(int) {
  const pid_t child = fork();
  if (child == 0) {
    _exit(0);
  }
  int status = -1;
  failed_forks = failed_forks != 0 || child < 0 || waitpid(child, &status, 0) != child || status != 0;
  forks = forks + 1;
}

void case_fork_in_a_signal_handler() {
  struct sigaction action {};
  action.sa_handler = fork_here;
  action.sa_flags = SA_RESTART;
  expect(sigaction(SIGALRM, &action, nullptr) == 0, "the handler is set");
  for (int armed = -1; forks < 1'000;) {
    if (forks != armed) {  // a moment from now on, so that each fork interrupts another instruction
      armed = forks;
      const itimerval once{{0, 0}, {0, 20 + armed * 7 % 50}};
      expect(setitimer(ITIMER_REAL, &once, nullptr) == 0, "the timer is set");
    }
    List<std::array<char, 500>> list;
    for (int i = 0; i < 1000; ++i) {
      list.push_back({});
    }
  }
  expect(failed_forks == 0, "the children ended well");
}
#endif

// --- the leak report ---

struct Leaked {
  char bytes[232];
};

void leak_three() {
  for (int i = 0; i < 3; ++i) {
    static_cast<void>(TypedStaticBlockAllocator<Leaked>::create());
  }
}

void case_leaks_reported() {
  by_block_leak_report_at_exit(1);
  leak_three();
}
void case_leaks_by_environment() { leak_three(); }

struct Other {
  char bytes[232];
};

void case_leaks_of_two_types_of_a_size() {
  leak_three();
  void* const returned = TypedStaticBlockAllocator<Leaked>::create();
  static_cast<void>(TypedStaticBlockAllocator<Other>::create());
  TypedStaticBlockAllocator<Leaked>::destroy(static_cast<Leaked*>(returned));
  static auto* const list = new List<Other>;  // static: no leak of malloc's to AddressSanitizer
  list->push_back(Other{});
  list->push_back(Other{});
}
#if __has_include(<sys/wait.h>)
void case_leaks_in_child() {
  by_block_leak_report_at_exit(1);
  TypedStaticBlockAllocator<Leaked>::destroy(TypedStaticBlockAllocator<Leaked>::create());
  const pid_t child = fork();
  if (child == 0) {
    leak_three();
    std::exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
}
#endif
void case_leaks_on_request() {
  leak_three();
  expect(by_block_leak_report(STDOUT_FILENO) >= 3, "three live");
}

// --- faults ---

void case_double_free() {
  BlockAllocator blocks(24, 8);
  void* const block = blocks.allocate();
  static_cast<void>(blocks.allocate());
  blocks.free(block);
  blocks.free(block);
}
using LargeBlocks = StaticBlockAllocator<100'000, 8>;

// A slab of such blocks is larger than the smallest slab; most of them lie behind its first 32 KiB.
void case_large_blocks() {
  BlockAllocator direct(100'000, 8);
  std::array<void*, 20> statics;
  std::array<void*, 20> directs;
  for (int round = 0; round < 3; ++round) {
    for (std::size_t i = 0; i < statics.size(); ++i) {
      statics[i] = LargeBlocks::allocate();
      directs[i] = direct.allocate();
      expect(statics[i] != nullptr && directs[i] != nullptr, "allocated");
      std::memset(statics[i], 1, 100'000);
      std::memset(directs[i], 1, 100'000);
    }
    for (std::size_t i = 0; i < statics.size(); ++i) {
      LargeBlocks::free(statics[i]);
      direct.free(directs[i]);
    }
  }
  expect(LargeBlocks::statistics().live_blocks == 0 && direct.statistics().live_blocks == 0, "all freed");
}
void case_static_large_double_free() {
  static_cast<void>(LargeBlocks::allocate());
  void* const block = LargeBlocks::allocate();
  LargeBlocks::free(block);
  LargeBlocks::free(block);
}
void case_static_foreign_free() {
  Blocks::free(Blocks::allocate());
  static_cast<void>(LargeBlocks::allocate());
  Blocks::free(LargeBlocks::allocate());
}
void case_foreign_free_without_a_pool() {
  BlockAllocator blocks(24, 8);
  BlockAllocator others(24, 8);
  others.free(blocks.allocate());
}
void case_static_double_free() {
  void* const block = Blocks::allocate();
  Blocks::free(block);
  Blocks::free(block);
}
void case_foreign_free() {
  BlockAllocator blocks(24, 8);
  BlockAllocator others(24, 8);
  void* const block = blocks.allocate();
  static_cast<void>(others.allocate());
  others.free(block);
}
void case_interior_free() {
  BlockAllocator blocks(24, 8);
  blocks.free(static_cast<char*>(blocks.allocate()) + 8);
}
void case_use_after_free() {
  BlockAllocator blocks(24, 8);
  char* const block = static_cast<char*>(blocks.allocate());
  blocks.free(block);
  block[20] = 1;
  for (int i = 0; i < 2000; ++i) {
    blocks.free(blocks.allocate());
  }
}
void case_valgrind_sees_use_after_free() {
  BlockAllocator blocks(24, 8);
  volatile char* const block = static_cast<char*>(blocks.allocate());
  block[3] = 1;
  blocks.free(const_cast<char*>(block));
  static_cast<void>(block[3]);
}
void case_valgrind_sees_no_fault() {
  BlockAllocator blocks(24, 8);
  List<std::string> list;
  for (int i = 0; i < 2000; ++i) {
    list.push_back("a text too long for the string itself");
    std::memset(blocks.allocate(), 1, 24);
  }
  list.clear();
  blocks.reset();
}

struct Case {
  std::string_view name;
  void (*run)();
};
constexpr Case cases[] = {
    {"before_main_and_at_exit", case_before_main_and_at_exit},
    {"thread_local_destructors", case_thread_local_destructors},
    {"detached_thread_at_exit", case_detached_thread_at_exit},
#if __has_include(<sys/wait.h>)
    {"fork", case_fork},
    {"fork_in_a_signal_handler", case_fork_in_a_signal_handler},
    {"leaks_in_child", case_leaks_in_child},
#endif
    {"leaks_reported", case_leaks_reported},
    {"leaks_by_environment", case_leaks_by_environment},
    {"leaks_of_two_types_of_a_size", case_leaks_of_two_types_of_a_size},
    {"leaks_on_request", case_leaks_on_request},
    {"double_free", case_double_free},
    {"static_double_free", case_static_double_free},
    {"large_blocks", case_large_blocks},
    {"static_large_double_free", case_static_large_double_free},
    {"static_foreign_free", case_static_foreign_free},
    {"foreign_free_without_a_pool", case_foreign_free_without_a_pool},
    {"foreign_free", case_foreign_free},
    {"interior_free", case_interior_free},
    {"use_after_free", case_use_after_free},
    {"valgrind_sees_use_after_free", case_valgrind_sees_use_after_free},
    {"valgrind_sees_no_fault", case_valgrind_sees_no_fault},
};

}  // namespace

int main(int count, char** arguments) {
  const std::string_view chosen = count > 1 ? arguments[1] : "";
  for (const Case& one : cases) {
    if (one.name == chosen) {
      one.run();
      return 0;
    }
  }
  std::fprintf(stderr, "no such case\n");
  return 2;
}
