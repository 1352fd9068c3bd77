// Allocates blocks of known sizes under tags. It links neither the library nor the recorder.
#include <dlfcn.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>

#include "blockyard/tag.hpp"

namespace {

void allocate(std::size_t size) {
  void* volatile block = std::malloc(size);
  std::free(block);
}

void nested() {
  allocate(600'001);
  void* volatile loaded = nullptr;
  {
    const blockyard::tag physics("physics");
    allocate(600'002);
    {
      const blockyard::tag broadphase("broadphase");
      allocate(600'003);
      loaded = std::malloc(600'004);
    }
    loaded = std::realloc(loaded, 600'005);
    const blockyard::tag narrowphase("narrowphase");
    allocate(600'006);
  }
  std::free(loaded);
  allocate(600'007);
}

void unbalanced() {
  by_tag_pop();
  by_tag_push("one");
  by_tag_pop();
  by_tag_pop();
  by_tag_pop();
  allocate(600'001);
  by_tag_push("two");
  allocate(600'002);
  std::thread([] {
    allocate(600'003);
    by_tag_push("left");
    by_tag_push("behind");
    allocate(600'004);
  }).join();
  std::thread([] { allocate(600'005); }).join();
  allocate(600'006);
  by_tag_pop();
}

void odd_names() {
  const std::string long_name(5000, 'x');
  // A character of two bytes stands where the name is cut.
  const std::string cut_name = std::string(231, 'y') + "\xc3\xa9";
  const char* const names[] = {"\xff\xfe",        "a/b",           "/c//d/", "", nullptr, "/", "two words\nhere",
                               long_name.c_str(), cut_name.c_str()};
  std::size_t size = 600'001;
  for (const char* name : names) {
    const blockyard::tag outer("outer");
    const blockyard::tag inner(name);
    allocate(size++);
  }
}

void deep() {
  for (int level = 0; level < 10'000; ++level) {
    by_tag_push("down");
    if (level == 63) allocate(600'001);
  }
  allocate(600'002);
  for (int level = 0; level < 9'937; ++level) by_tag_pop();
  allocate(600'003);
  for (int level = 0; level < 63; ++level) by_tag_pop();
  allocate(600'004);
}

void many() {
  for (int i = 0; i < 40'000; ++i) {
    const std::string name = "asset " + std::to_string(i);
    const blockyard::tag assets("assets");
    const blockyard::tag asset(name.c_str());
    allocate(i < 39'999 ? 600'001 : 600'002);
  }
  allocate(600'003);
}

void carried() {
  by_tag_path path;
  {
    const blockyard::tag loading("loading");
    const blockyard::tag textures("textures");
    path = by_tag_current();
  }
  std::thread([path] {
    const blockyard::tag own("worker");
    {
      const blockyard::tag same(path);
      allocate(600'001);
      const blockyard::tag below("mips");
      allocate(600'002);
    }
    {
      const blockyard::tag none(by_tag_path{0});
      allocate(600'003);
      const blockyard::tag unknown(by_tag_path{4'000'000'000});
      allocate(600'004);
    }
    allocate(600'005);
  }).join();
}

void forked() {
  const blockyard::tag parent("parent");
  const by_tag_path path = by_tag_current();
  allocate(600'001);
  void* volatile inherited = std::malloc(600'002);
  const pid_t child = fork();
  if (child == 0) {
    const blockyard::tag own("child");
    allocate(600'003);
    std::free(inherited);
    by_tag_pop();
    by_tag_pop();
    by_tag_enter(path);
    by_tag_push("again");
    allocate(600'004);
    _exit(0);
  }
  const blockyard::tag waiting("waiting");
  allocate(600'005);
  waitpid(child, nullptr, 0);
}

void on_signal(int) {
  const blockyard::tag handler("handler");
  allocate(600'002);
}

void interrupted() {
  signal(SIGUSR1, on_signal);
  const blockyard::tag interrupted("interrupted");
  allocate(600'001);
  raise(SIGUSR1);
  allocate(600'003);
}

// Signals come at every moment of a push and a pop.
void hammered() {
  signal(SIGALRM, [](int) {
    const blockyard::tag handler("handler");
    const blockyard::tag deeper("deeper");
  });
  ualarm(50, 50);
  for (int i = 0; i < 60'000; ++i) {
    const blockyard::tag outer("outer");
    allocate(600'001);
    const blockyard::tag inner("inner");
    allocate(600'003);
  }
  ualarm(0, 0);
}

void plugged(const char* path) {
  const blockyard::tag host("host");
  void* plugin = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (plugin == nullptr) std::abort();
  reinterpret_cast<void (*)()>(dlsym(plugin, "plugin_work"))();
  dlclose(plugin);
  allocate(600'001);
}

void kept() {
  void* volatile early = nullptr;
  {
    const blockyard::tag loading("loading");
    early = std::malloc(600'001);
  }
  std::puts("step");
  std::fflush(stdout);
  if (std::getchar() == EOF) std::exit(3);
  const blockyard::tag playing("playing");
  allocate(600'002);
  std::free(early);
}

}  // namespace

int main(int, char** arguments) {
  const std::string what = arguments[1];
  errno = 77;
  if (what == "nested") nested();
  if (what == "unbalanced") unbalanced();
  if (what == "odd-names") odd_names();
  if (what == "deep") deep();
  if (what == "many") many();
  if (what == "carried") carried();
  if (what == "forked") forked();
  if (what == "interrupted") interrupted();
  if (what == "hammered") hammered();
  if (what == "plugged") plugged(arguments[2]);
  if (what == "kept") kept();
  {
    errno = 77;
    const blockyard::tag last("last");
    if (errno != 77) return 4;
  }
  std::puts("done");
  return 0;
}
