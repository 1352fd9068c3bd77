// Golden instruction counts of the heap's fast paths: why a test and not a benchmark? An instruction count has no
// noise. A path that grew by one instruction fails here, on any machine, however busy.
//
//   heap_golden_counts LIBRARY FILE COMPILER             compares with the counts that FILE holds for COMPILER
//   heap_golden_counts LIBRARY FILE COMPILER --record    writes them there
//
// A child runs the operations with LIBRARY preloaded; the parent steps through each call and counts the instructions
// whose address lies in LIBRARY's code. Those of the C library (memset) and of the program are left out.
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include <operations.hpp>  // the heap's, or those of tests/lifetime/golden

#if defined(__x86_64__)
#include <sys/user.h>
#endif

namespace {

[[noreturn]] void give_up(const std::string& sentence) {
  std::fprintf(stderr, "blockyard: %s\n", sentence.c_str());
  std::exit(1);
}

struct Range {
  std::uintptr_t begin = 0;
  std::uintptr_t end = 0;
  bool contains(std::uintptr_t address) const { return address >= begin && address < end; }
};

// Where the library's code lies in the child.
Range code_of(pid_t child, const std::string& library) {
  std::ifstream maps("/proc/" + std::to_string(child) + "/maps");
  for (std::string line; std::getline(maps, line);) {
    if (line.find(library) != std::string::npos && line.find("r-xp") != std::string::npos) {
      Range range;
      char dash = 0;
      std::istringstream(line) >> std::hex >> range.begin >> dash >> range.end;
      return range;
    }
  }
  give_up(library + " is not under the program that was to run on it");
}

std::uintptr_t instruction_pointer([[maybe_unused]] pid_t child) {
#if defined(__x86_64__)
  user_regs_struct registers{};
  ptrace(PTRACE_GETREGS, child, nullptr, &registers);
  return registers.rip;
#else
  give_up("instructions can be counted on x86-64 only so far");
#endif
}

// Lets the child run to its next stop and returns the signal.
int wait_for_stop(pid_t child) {
  int status = 0;
  if (waitpid(child, &status, 0) != child || !WIFSTOPPED(status)) {
    give_up("the program under the heap ended before all its calls were counted");
  }
  return WSTOPSIG(status);
}

void run_to_mark(pid_t child) {
  do {
    ptrace(PTRACE_CONT, child, nullptr, nullptr);
  } while (wait_for_stop(child) != SIGUSR1);
}

// Steps from one mark to the next. The marks themselves run in the C library and in this program, which do not count.
unsigned count_to_mark(pid_t child, const Range& code) {
  unsigned counted = 0;
  for (;;) {
    counted += code.contains(instruction_pointer(child)) ? 1u : 0u;
    ptrace(PTRACE_SINGLESTEP, child, nullptr, nullptr);
    if (wait_for_stop(child) == SIGUSR1) {
      return counted;
    }
  }
}

std::vector<unsigned> count_all(const char* program, const std::string& library) {
  const pid_t child = fork();
  if (child == 0) {
    setenv("LD_PRELOAD", library.c_str(), 1);
    // Its work would come at random moments, and a library of the surroundings would be counted.
    setenv("BLOCKYARD_HEAP_JANITOR", "0", 1);
    setenv("LD_BIND_NOW", "1", 1);
    ptrace(PTRACE_TRACEME, 0, nullptr, nullptr);
    execl(program, program, "--operations", nullptr);
    std::_Exit(127);
  }
  wait_for_stop(child);  // at its exec
  std::vector<unsigned> counts;
  Range code;
  for (std::size_t i = 0; i < golden::names.size(); ++i) {
    run_to_mark(child);
    if (i == 0) {
      code = code_of(child, library.substr(library.rfind('/') + 1));
    }
    counts.push_back(count_to_mark(child, code));
  }
  ptrace(PTRACE_KILL, child, nullptr, nullptr);
  waitpid(child, nullptr, 0);
  return counts;
}

// Lines `COMPILER OPERATION COUNT`; lines that begin with # are for people.
std::map<std::string, std::map<std::string, unsigned>> read_golden(const std::string& path) {
  std::map<std::string, std::map<std::string, unsigned>> golden;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string compiler;
    std::string operation;
    unsigned count = 0;
    if (words >> compiler && compiler[0] != '#' && words >> operation >> count) {
      golden[compiler][operation] = count;
    }
  }
  return golden;
}

void write_golden(const std::string& path, const std::map<std::string, std::map<std::string, unsigned>>& golden) {
  std::ofstream file(path);
  file << "# Instructions of one call, inside the library that is measured: COMPILER OPERATION COUNT. operations.hpp "
          "says\n"
          "# what each is. To record again, with each compiler: golden/record BUILD_FOLDER\n";
  for (const auto& [compiler, counts] : golden) {
    for (const char* name : golden::names) {
      if (const auto found = counts.find(name); found != counts.end()) {
        file << compiler << ' ' << name << ' ' << found->second << '\n';
      }
    }
  }
}

}  // namespace

int main(int count, char** arguments) {
  if (count == 2 && std::strcmp(arguments[1], "--operations") == 0) {
    golden::run_operations();
  }
  if (count < 4) {
    std::fprintf(stderr, "usage: heap_golden_counts LIBRARY FILE COMPILER [--record]\n");
    return 2;
  }
  const std::string path = arguments[2];
  const std::string compiler = arguments[3];
  const std::vector<unsigned> counts = count_all("/proc/self/exe", arguments[1]);
  auto golden = read_golden(path);
  if (count == 5) {
    for (std::size_t i = 0; i < counts.size(); ++i) {
      golden[compiler][golden::names[i]] = counts[i];
    }
    write_golden(path, golden);
    return 0;
  }
  if (!golden.contains(compiler)) {
    std::printf("SKIPPED: no instruction counts are recorded for %s: NOTHING was compared (golden/record does)\n",
                compiler.c_str());
    return 77;
  }
  int differing = 0;
  for (std::size_t i = 0; i < counts.size(); ++i) {
    const unsigned expected = golden[compiler][golden::names[i]];
    const bool same = counts[i] == expected;
    std::printf("%-18s %4u instructions, recorded %4u%s\n", golden::names[i], counts[i], expected,
                same ? "" : "  DIFFERS");
    differing += same ? 0 : 1;
  }
  if (differing != 0) {
    std::printf("FAILED: a fast path changed. Where that is meant: golden/record BUILD_FOLDER, beside the counts\n");
  }
  return differing == 0 ? 0 : 1;
}
