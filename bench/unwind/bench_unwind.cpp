// What a stack costs: our walker beside libunwind's unw_backtrace() with its cache hot, and beside the C library's
// backtrace(), on a program of 20 functions. Prints nanoseconds for each stack and the ratio to libunwind, each the
// median of several rounds in turn.
#define UNW_LOCAL_ONLY
#include <libunwind.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include <dlfcn.h>

#include "call_tree.hpp"
#include "clock/clock.hpp"
#include "unwind/objects.hpp"
#include "unwind/walker.hpp"

namespace {

using namespace blockyard;

unwind::Walker* walker = nullptr;
struct Nowhere final : unwind::Sink {
} sink;
int (*c_library_backtrace)(void**, int) = nullptr;
std::uint64_t events = 0;
std::uint64_t frames = 0;

[[gnu::noinline]] void nothing() { ++events; }
[[gnu::noinline]] void ours() {
  ++events;
  walker->walk(unwind::caller_of(__builtin_frame_address(0)), sink);
}
[[gnu::noinline]] void libunwind() {
  ++events;
  void* addresses[64];
  frames += static_cast<std::uint64_t>(unw_backtrace(addresses, 64));
}
[[gnu::noinline]] void c_library() {
  ++events;
  void* addresses[64];
  frames += static_cast<std::uint64_t>(c_library_backtrace(addresses, 64));
}

using Way = void (*)();

double ns_per_event(void (*tree)(const Shape&, Way), const Shape& shape, Way way) {
  events = 0;
  const std::uint64_t begin = clock::ticks_fenced();
  tree(shape, way);
  const std::uint64_t end = clock::ticks_fenced();
  return static_cast<double>(end - begin) / clock::ticks_per_ns() / static_cast<double>(events);
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

void measure(const char* name, void (*tree)(const Shape&, Way), unsigned depth, unsigned calls) {
  constexpr std::array<Way, 4> ways = {nothing, ours, libunwind, c_library};
  const unsigned rounds = 9;
  std::array<std::vector<double>, ways.size()> times;
  frames = 0;
  ns_per_event(tree, {depth, calls, 20'000}, libunwind);
  const double depth_seen = static_cast<double>(frames) / static_cast<double>(events);
  for (unsigned round = 0; round < rounds; ++round) {
    for (std::size_t way = 0; way < ways.size(); ++way) {
      if (ways[way] == c_library && c_library_backtrace == nullptr) continue;
      times[way].push_back(ns_per_event(tree, {depth, calls, ways[way] == c_library ? 5'000u : 200'000u}, ways[way]));
    }
  }
  const double base = median(times[0]);
  const double own = median(times[1]) - base;
  const double theirs = median(times[2]) - base;
  std::printf("  %-22s %6.1f %6u %9.1f %9.1f", name, depth_seen, calls, own, theirs);
  if (c_library_backtrace != nullptr) std::printf(" %9.0f", median(times[3]) - base);
  std::printf(" %8.2f\n", own / theirs);
}

}  // namespace

int main() {
  unwind::use_find_object(dlsym(RTLD_DEFAULT, "_dl_find_object"));
  // libunwind has a backtrace() too; the C library's is wanted.
  void* library = dlopen("libc.so.6", RTLD_NOW | RTLD_NOLOAD);
  c_library_backtrace = reinterpret_cast<int (*)(void**, int)>(dlsym(library, "backtrace"));
  walker = unwind::Walker::create(64);
  if (walker == nullptr) return 1;
  std::printf("  %-22s %6s %6s %9s %9s %9s %8s\n", "program", "frames", "calls", "ours, ns", "libunwind", "backtrace",
              "ratio");
  for (const unsigned calls : {2u, 1u}) {
    for (const unsigned depth : {10u, 17u, 29u}) measure("no frame pointers", call_tree_without, depth, calls);
    for (const unsigned depth : {10u, 17u, 29u}) measure("frame pointers", call_tree_with, depth, calls);
  }
  return 0;
}
