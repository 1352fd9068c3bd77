// A program that the tests compile, and the addresses of its calls as it reports them itself.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <sstream>
#include <string>

#include "../journal/journal_files.hpp"
#include "names/debug_files.hpp"

namespace blockyard::names::testing {

using journal::testing::Folder;

inline constexpr const char* program_text = R"(
#include <cstdio>
#include <dlfcn.h>
#include <link.h>
static int first(dl_phdr_info* info, unsigned long, void* bias) {
  *static_cast<unsigned long*>(bias) = info->dlpi_addr;
  return 1;
}
__attribute__((noinline)) void report(const char* what, void* address) {
  unsigned long bias = 0;
  dl_iterate_phdr(first, &bias);
  std::printf("%s %lx\n", what, (unsigned long)address - bias - 1);
}
extern "C" __attribute__((noinline)) void leaf(const char* what) {
  report(what, __builtin_return_address(0));
  asm volatile("" ::: "memory");
}
#ifndef LINKAGE
#define LINKAGE
#endif
namespace app {
LINKAGE __attribute__((always_inline)) inline int inner(int x) {
  leaf("inlined");  // LINE inner
  return x + 1;
}
__attribute__((always_inline)) inline int middle(int x) {
  return inner(x) * 2;  // LINE middle
}
struct Widget {
  __attribute__((noinline, used)) int outer(int x) {
    int y = middle(x);  // LINE outer
    asm volatile("" ::: "memory");
    return y + EXTRA;
  }
};
namespace {
__attribute__((noinline)) int hidden(int x) {
  leaf("hidden");  // LINE hidden
  asm volatile("" ::: "memory");
  return x;
}
}
}
int main() {
  app::Widget widget;
  return widget.outer(1) + app::hidden(2) == 0;
}
)";

inline int line_of(const std::string& mark) {
  std::istringstream lines(program_text);
  int number = 0;
  for (std::string line; std::getline(lines, line);) {
    ++number;
    if (line.find("LINE " + mark) != std::string::npos) return number;
  }
  return 0;
}

inline std::string output_of(const std::string& command) {
  std::string text;
  FILE* pipe = ::popen((command + " 2>&1").c_str(), "r");
  if (pipe == nullptr) return text;
  char buffer[256];
  while (std::fgets(buffer, sizeof buffer, pipe) != nullptr) text += buffer;
  if (::pclose(pipe) != 0) ADD_FAILURE() << command << "\n" << text;
  return text;
}

inline bool has(const std::string& tool) { return std::system(("command -v " + tool + " > /dev/null").c_str()) == 0; }

/// A compiled program and the addresses of the calls that it reported.
struct Program {
  std::string path;
  std::string build_id;
  std::uint64_t inlined = 0;
  std::uint64_t hidden = 0;
};

inline Program compile(const Folder& folder, const std::string& flags, const std::string& compiler = BLOCKYARD_CXX,
                       const std::string& name = "game") {
  journal::testing::spill(folder / "game.cpp", program_text);
  Program program{folder / name, {}, 0, 0};
  output_of("cd '" + folder / "" + "' && " + compiler + " -O2 -DEXTRA=1 -Wl,--build-id " + flags + " game.cpp -o " +
            name);
  std::istringstream words(output_of("'" + program.path + "'"));
  std::string what;
  for (std::uint64_t address = 0; words >> what >> std::hex >> address;) {
    (what == "inlined" ? program.inlined : program.hidden) = address;
  }
  program.build_id = build_id_of(program.path);
  EXPECT_NE(program.inlined, 0u);
  EXPECT_EQ(program.build_id.size(), 40u);
  return program;
}

}  // namespace blockyard::names::testing
