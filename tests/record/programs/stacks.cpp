// Allocates below functions of known names, in each of the odd places that a stack can be in. The first argument says
// which; sizes tell the events apart.
#include <alloca.h>

#include <csetjmp>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>
#include <string>
#include <thread>

#include <dlfcn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#if defined(__clang__)
#define KEEP [[gnu::noinline]]
#else
#define KEEP [[gnu::noinline, gnu::noclone]]
#endif

namespace {

void* volatile sink;
void* blocks[16];

}  // namespace

// Exported and in C, so that a symbol table names them. A store after the call keeps each from being a tail call.
extern "C" {

KEEP void* innermost(std::size_t size) {
  void* block = std::malloc(size);
  sink = block;
  return block;
}
KEEP void* middle(std::size_t size) {
  void* block = innermost(size);
  sink = block;
  return block;
}
KEEP void releasing(void* block) {
  std::free(block);
  sink = nullptr;
}

KEEP void every_function() {
  blocks[0] = std::malloc(700'001);
  blocks[1] = std::calloc(1, 700'002);
  blocks[2] = std::realloc(nullptr, 700'003);
  blocks[2] = std::realloc(blocks[2], 700'004);
  blocks[3] = std::aligned_alloc(64, 700'032);
  if (posix_memalign(&blocks[4], 64, 700'005) != 0) std::abort();
  blocks[5] = reallocarray(nullptr, 700'006, 1);
  blocks[6] = operator new(700'007);
  blocks[7] = operator new[](700'008);
  blocks[8] = operator new (700'009, std::align_val_t{64});
  blocks[9] = operator new(700'010, std::nothrow);
  for (int i = 0; i < 6; ++i) std::free(blocks[i]);
  operator delete(blocks[6]);
  operator delete[](blocks[7]);
  operator delete (blocks[8], std::align_val_t{64});
  operator delete(blocks[9], std::nothrow);
  sink = nullptr;
}

KEEP void recursing(int depth) {
  if (depth == 0) {
    sink = middle(710'001);
  } else {
    recursing(depth - 1);
  }
  sink = nullptr;
}

KEEP void handler(int) { sink = middle(720'001); }

KEEP void on_a_signal() {
  std::signal(SIGUSR1, handler);
  std::raise(SIGUSR1);
  sink = nullptr;
}

KEEP void throwing() {
  blocks[0] = middle(730'001);
  throw 1;
}

KEEP void catching() {
  try {
    throwing();
  } catch (int) {
    sink = middle(730'002);
  }
  sink = middle(730'003);
}

std::jmp_buf jump;
KEEP void jumping() {
  sink = middle(740'001);
  std::longjmp(jump, 1);
}
KEEP void over_a_jump() {
  if (setjmp(jump) == 0) jumping();
  sink = middle(740'002);
}

KEEP void in_a_thread() { sink = middle(750'001); }

ucontext_t main_context;
ucontext_t fiber_context;
KEEP void fiber_body() {
  for (int turn = 0; turn < 3; ++turn) {
    sink = middle(760'001);
    swapcontext(&fiber_context, &main_context);
  }
}
KEEP void on_a_fiber() {
  constexpr std::size_t bytes = 1 << 16;
  void* stack = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  getcontext(&fiber_context);
  fiber_context.uc_stack.ss_sp = stack;
  fiber_context.uc_stack.ss_size = bytes;
  fiber_context.uc_link = &main_context;
  makecontext(&fiber_context, fiber_body, 0);
  for (int turn = 0; turn < 3; ++turn) {
    swapcontext(&main_context, &fiber_context);
    sink = middle(760'002);
  }
  munmap(stack, bytes);
}

KEEP void allocate_below_generated_code() { sink = middle(770'001); }

// push rbp; mov rbp, rsp; call rdi; pop rbp; ret. A line of the perf map names it.
KEEP void generating() {
  constexpr unsigned char code[] = {0x55, 0x48, 0x89, 0xe5, 0xff, 0xd7, 0x5d, 0xc3};
  void* page = mmap(nullptr, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  std::memcpy(page, code, sizeof code);
  const std::string path = "/tmp/perf-" + std::to_string(getpid()) + ".map";
  if (std::FILE* map = std::fopen(path.c_str(), "w")) {
    std::fprintf(map, "%lx %zx generated_function\n", reinterpret_cast<unsigned long>(page), sizeof code);
    std::fclose(map);
  }
  reinterpret_cast<void (*)(void (*)())>(page)(allocate_below_generated_code);
  sink = nullptr;
}

KEEP void in_the_child() {
  releasing(blocks[0]);
  sink = middle(780'002);
}
KEEP void forking() {
  blocks[0] = middle(780'001);
  const pid_t child = fork();
  if (child == 0) {
    in_the_child();
    _exit(0);
  }
  waitpid(child, nullptr, 0);
  sink = nullptr;
}

// Each library in turn lies where the one before it lay.
KEEP void loading(const char* path) {
  void* library = dlopen(path, RTLD_NOW);
  if (library == nullptr) std::abort();
  reinterpret_cast<void (*)()>(dlsym(library, "plugin_work"))();
  dlclose(library);
  sink = nullptr;
}

}  // extern "C"

int main(int count, char** arguments) {
  const std::string what = count > 1 ? arguments[1] : "";
  if (what == "functions") every_function();
  if (what == "nested") releasing(middle(705'001));
  if (what == "deep") recursing(count > 2 ? std::atoi(arguments[2]) : 100);
  if (what == "signal") on_a_signal();
  if (what == "exception") catching();
  if (what == "jump") over_a_jump();
  if (what == "thread") std::thread(in_a_thread).join();
  if (what == "fiber") on_a_fiber();
  if (what == "generated") generating();
  if (what == "fork") forking();
  if (what == "load") {
    for (int i = 2; i < count; ++i) loading(arguments[i]);
  }
  return 0;
}
