// Why: a program that misuses the heap should be told so. Each case plants one mistake, goes on for a while as a
// program would, and ends; caught.txt says what catches it.
//
//   heap_misuse              runs every case in a process of its own; fails where caught.txt says otherwise
//   heap_misuse NAME         runs one case
//   heap_misuse --caught     prints the names of the cases that the heap under this program catches
//
// Caught is a case that ends by a report, or for a heap that is not ours by any signal, which is how others report.
#include <malloc.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <functional>
#include <iostream>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "behaviour.hpp"

namespace {

// Hides from the compiler what a pointer is, so that it neither warns of a mistake nor leaves it out.
char* hidden(void* pointer) {
  __asm__ volatile("" : "+r"(pointer) : : "memory");
  return static_cast<char*>(pointer);
}

char* block_of(std::size_t size) { return static_cast<char*>(std::memset(hidden(std::malloc(size)), 1, size)); }

// What a program does after its mistake: allocates and frees blocks of the same size.
void go_on(std::size_t size) {
  for (int round = 0; round < 3; ++round) {
    std::vector<char*> blocks(300);
    for (char*& each : blocks) {
      each = block_of(size);
    }
    for (char* each : blocks) {
      std::free(each);
    }
  }
}

void free_others(std::size_t size, int count) {
  std::vector<char*> others(static_cast<std::size_t>(count));
  for (char*& each : others) {
    each = block_of(size);
  }
  for (char* each : others) {
    std::free(each);
  }
}

using Case = std::function<void()>;
std::map<std::string, Case> cases;

// Registers one case for each size: its mistake gets the size.
template <class Mistake>
void plant(const char* name, std::initializer_list<std::size_t> sizes, Mistake&& mistake) {
  for (const std::size_t size : sizes) {
    cases[std::string(name) + '/' + std::to_string(size)] = [=] {
      mistake(size);
      go_on(size);
    };
  }
}

void in_another_thread(const std::function<void()>& work) { std::thread(work).join(); }

constexpr std::size_t large = 20'000;
constexpr std::size_t huge = std::size_t{3} << 20;

void plant_double_frees() {
  for (const int between : {0, 1, 5, 100}) {
    plant(("free-twice-after-" + std::to_string(between)).c_str(), {16, 64, 2'000, large, huge}, [=](std::size_t size) {
      char* const block = block_of(size);
      std::vector<char*> others(static_cast<std::size_t>(between));
      for (char*& each : others) {
        each = block_of(size);
      }
      std::free(block);
      for (char* each : others) {
        std::free(each);
      }
      std::free(hidden(block));
    });
  }
  plant("free-twice-after-a-malloc-of-another-size", {64, large}, [](std::size_t size) {
    char* const block = block_of(size);
    std::free(block);
    char* const other = block_of(size * 3);
    std::free(hidden(block));
    std::free(other);
  });
  plant("free-again-in-another-thread", {64, 2'000, large}, [](std::size_t size) {
    in_another_thread([] {});  // what a first thread allocates might lie where the freed block did
    char* const block = block_of(size);
    std::free(block);
    in_another_thread([=] { std::free(hidden(block)); });
  });
  plant("free-again-what-another-thread-freed", {64, 2'000, large}, [](std::size_t size) {
    char* const block = block_of(size);
    in_another_thread([=] { std::free(hidden(block)); });
    std::free(hidden(block));
  });
  plant("free-what-realloc-moved", {64, 2'000, large}, [](std::size_t size) {
    char* const block = block_of(size);
    char* const fence = block_of(size);
    char* const moved = hidden(std::realloc(block, size * 8));
    if (moved != block) {
      std::free(hidden(block));
    }
    std::free(moved);
    std::free(fence);
  });
  plant("free-what-realloc-to-0-freed", {64, large}, [](std::size_t size) {
    char* const block = block_of(size);
    static_cast<void>(hidden(std::realloc(block, 0)));
    std::free(hidden(block));
  });
  plant("free-twice-aligned", {64, large}, [](std::size_t size) {
    char* const block = hidden(memalign(256, size));
    std::free(block);
    std::free(hidden(block));
  });
}

void plant_wrong_pointers() {
  for (const int offset : {1, 8, 16, 32, -8, -16}) {
    const std::string off = (offset < 0 ? "minus-" : "plus-") + std::to_string(std::abs(offset));
    plant(("free-" + off).c_str(), {48, 64, 2'000, large, huge}, [=](std::size_t size) {
      char* const fence = block_of(size);
      std::free(hidden(block_of(size)) + offset);
      std::free(fence);
    });
  }
  for (const int offset : {1, 8, 16}) {
    plant(("realloc-plus-" + std::to_string(offset)).c_str(), {64, large}, [=](std::size_t size) {
      static_cast<void>(hidden(std::realloc(hidden(block_of(size)) + offset, size * 3)));
    });
  }
  plant("usable-size-plus-16", {64, large},
        [](std::size_t size) { static_cast<void>(malloc_usable_size(hidden(block_of(size)) + 16)); });
  plant("free-the-middle", {160, 2'000, large, huge},
        [](std::size_t size) { std::free(hidden(block_of(size)) + (size / 2 & ~std::size_t{15})); });
  plant("free-a-page-of-the-middle", {large, huge}, [](std::size_t size) { std::free(hidden(block_of(size)) + 4096); });
  plant("free-the-last-page", {large, huge},
        [](std::size_t size) { std::free(hidden(block_of(size)) + (size - 1) / 4096 * 4096); });
  static std::array<char, 256> global;
  thread_local std::array<char, 256> of_thread;
  const auto plant_foreign = [](const char* name, auto&& pointer) {
    cases[std::string("free-") + name] = [=] {
      std::free(hidden(pointer()));
      go_on(64);
    };
    cases[std::string("realloc-") + name] = [=] {
      static_cast<void>(hidden(std::realloc(hidden(pointer()), 300)));
      go_on(64);
    };
  };
  plant_foreign("global", [] { return global.data() + 16; });
  plant_foreign("of-thread", [] { return of_thread.data() + 16; });
  plant_foreign("small-number", [] { return reinterpret_cast<void*>(std::uintptr_t{0x40}); });
  plant_foreign("mapping", [] {
    return static_cast<char*>(mmap(nullptr, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)) + 64;
  });
  const auto on_stack = [](auto&& act) {
    return [=] {
      std::array<char, 256> local{};
      act(hidden(local.data()) + 16);
      go_on(64);
    };
  };
  cases["free-stack"] = on_stack([](char* pointer) { std::free(pointer); });
  cases["realloc-stack"] = on_stack([](char* pointer) { static_cast<void>(hidden(std::realloc(pointer, 300))); });
  cases["free-code"] = [] {
    std::free(hidden(reinterpret_cast<void*>(&free_others)));
    go_on(64);
  };
}

void plant_uses_of_freed() {
  plant("realloc-freed", {64, 2'000, large}, [](std::size_t size) {
    char* const block = block_of(size);
    std::free(block);
    static_cast<void>(hidden(std::realloc(hidden(block), size * 3)));
  });
  plant("realloc-freed-after-5", {64, large}, [](std::size_t size) {
    char* const block = block_of(size);
    char* const fence = block_of(size);
    std::free(block);
    free_others(size, 5);
    static_cast<void>(hidden(std::realloc(hidden(block), size * 3)));
    std::free(fence);
  });
  plant("usable-size-freed", {64, 2'000, large}, [](std::size_t size) {
    char* const block = block_of(size);
    std::free(block);
    static_cast<void>(malloc_usable_size(hidden(block)));
  });
  for (const int between : {0, 100}) {
    const std::string after = between == 0 ? "" : "-after-" + std::to_string(between);
    const auto write_at = [=](auto&& place) {
      return [=](std::size_t size) {
        char* const block = block_of(size);
        std::vector<char*> others(static_cast<std::size_t>(between));
        for (char*& each : others) {
          each = block_of(size);
        }
        for (char* each : others) {
          std::free(each);
        }
        std::free(block);
        std::memset(hidden(block) + place(size), 0x41, 8);
      };
    };
    plant(("write-to-freed-begin" + after).c_str(), {64, 2'000, large}, write_at([](std::size_t) { return 0; }));
    plant(("write-to-freed-second-word" + after).c_str(), {64, 2'000}, write_at([](std::size_t) { return 8; }));
    plant(("write-to-freed-end" + after).c_str(), {64, 2'000, large},
          write_at([](std::size_t size) { return size - 8; }));
  }
}

void plant_overflows() {
  for (const std::size_t by : {1u, 8u, 16u}) {
    plant(("overflow-by-" + std::to_string(by)).c_str(), {24, 64, 2'000, 2'048, large}, [=](std::size_t size) {
      char* const before = block_of(size);
      char* const block = block_of(size);
      char* const behind = block_of(size);
      std::memset(hidden(block) + size, 0x41, by);
      std::free(block);
      std::free(before);
      std::free(behind);
    });
    plant(("underflow-by-" + std::to_string(by)).c_str(), {24, 64, 2'000, 2'048, large}, [=](std::size_t size) {
      char* const before = block_of(size);
      char* const block = block_of(size);
      char* const behind = block_of(size);
      std::memset(hidden(block) - by, 0x41, by);
      std::free(block);
      std::free(before);
      std::free(behind);
    });
  }
  plant("overflow-by-a-terminator", {24, 64, 2'000}, [](std::size_t size) {
    char* const block = block_of(size);
    hidden(block)[size] = '\0';
    std::free(block);
  });
}

// How the case ended in a process of its own, with what it wrote to standard error.
bool is_caught(const std::string& name) {
  std::fflush(nullptr);
  std::array<int, 2> ends{};
  behaviour::require(pipe(ends.data()) == 0, "no pipe");
  const pid_t child = fork();
  behaviour::require(child >= 0, "fork fails");
  if (child == 0) {
    behaviour::end_with_parent();
    dup2(ends[1], STDERR_FILENO);
    close(ends[0]);
    close(ends[1]);
    execl("/proc/self/exe", "heap_misuse", name.c_str(), nullptr);
    _exit(127);
  }
  close(ends[1]);
  std::string said;
  std::array<char, 4096> some{};
  for (ssize_t count = 0; (count = read(ends[0], some.data(), some.size())) > 0;) {
    said.append(some.data(), static_cast<std::size_t>(count));
  }
  close(ends[0]);
  int status = 0;
  behaviour::require(waitpid(child, &status, 0) == child, "a case can't be waited for");
  const bool ours = by_heap_check != nullptr;
  behaviour::require(WIFSIGNALED(status) || WEXITSTATUS(status) == 0, "a case could not be run");
  return WIFSIGNALED(status) && (!ours || said.rfind("blockyard: ", 0) == 0);
}

int compare(const char* column) {
  std::ifstream file(CAUGHT);
  std::map<std::string, bool> expected;
  std::string line;
  while (std::getline(file, line)) {
    std::string name;
    std::string by;
    std::istringstream words(line);
    if (words >> name && name[0] != '#') {
      expected[name] = false;
      while (words >> by) {
        expected[name] |= by == column;
      }
    }
  }
  int wrong = 0;
  for (const auto& [name, unused] : cases) {
    if (const auto found = expected.find(name); found == expected.end()) {
      std::cerr << "caught.txt lacks " << name << '\n';
      ++wrong;
      // Once more with another secret: one canary in 256 begins or ends with the byte that a mistake writes.
    } else if (is_caught(name) != found->second && (!found->second || !is_caught(name))) {
      std::cerr << name << (found->second ? " is not caught\n" : " is caught, and caught.txt does not say so\n");
      ++wrong;
    }
  }
  behaviour::require(expected.size() == cases.size(), "caught.txt names a case that does not exist");
  return wrong == 0 ? 0 : 1;
}

}  // namespace

int main(int count, char** words) {
  plant_double_frees();
  plant_wrong_pointers();
  plant_uses_of_freed();
  plant_overflows();
  const std::string word = count > 1 ? words[1] : "";
  if (const auto found = cases.find(word); found != cases.end()) {
    const int null = open("/dev/null", O_WRONLY);
    dup2(null, STDOUT_FILENO);
    found->second();
    return 0;
  }
  if (word == "--caught") {
    for (const auto& [name, unused] : cases) {
      if (is_caught(name)) {
        std::cout << name << '\n';
      }
    }
    return 0;
  }
  behaviour::require(word.empty(), "there is no such case");
  behaviour::require_sound_heap();
  return compare(std::getenv("BLOCKYARD_HEAP_GUARD") != nullptr ? "guard" : COLUMN);
}
