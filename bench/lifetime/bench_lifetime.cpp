// What a block costs to allocate and to free. SUBJECT is temp, temp-cursor (temp through a temp_cursor), temp-job, the
// path of an adapter, or nothing: the loop and the clock, whose cost is in every other figure, too.
//
// bench_lifetime SUBJECT THREADS SIZE: the study's loop, 1000 blocks of one size, freed in their order. Prints medians
// of the passes, nanoseconds a block to allocate and to free.
//
// bench_lifetime SUBJECT frames JOURNAL WALK: frames of 500 blocks with the sizes and alignments, in their order, that
// a real program took and gave back within its frames. Between two frames WALK bytes of other memory are read, as a
// game works on its own. Prints nanoseconds a block to allocate, to free, and of the frame's end.
#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <barrier>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <string_view>
#include <thread>
#include <vector>

#include "base/clock.hpp"
#include "blockyard/adapter.h"
#include "frame_blocks.hpp"
#include "subjects.hpp"

namespace {

using namespace blockyard;

constexpr std::size_t blocks_a_pass = 1000;
constexpr int passes = 2001;  // the first hundred warm up
constexpr int warm_up = 100;

constexpr std::size_t blocks_a_frame = 500;
constexpr int frames = 1200;
constexpr std::uint32_t largest_block = 1024;

struct Nanoseconds {
  double allocate;
  double free;
  double end = 0;  ///< of the frame
};

class Medians {
 public:
  void add(const Nanoseconds& one) {
    allocate_.push_back(one.allocate);
    free_.push_back(one.free);
    end_.push_back(one.end);
  }
  Nanoseconds get() { return {middle(allocate_), middle(free_), middle(end_)}; }

 private:
  static double middle(std::vector<double>& values) {
    const auto found = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
    std::nth_element(values.begin(), found, values.end());
    return *found;
  }

  std::vector<double> allocate_;
  std::vector<double> free_;
  std::vector<double> end_;
};

double nanoseconds(std::uint64_t from, std::uint64_t to) {
  static const double ticks_per_ns = base::ticks_per_ns();
  return static_cast<double>(to - from) / ticks_per_ns;
}

// The loop's own cost is in every figure: four blocks share it. By hand, since compilers unroll some loops only.
template <std::size_t count, class Body>
[[gnu::always_inline]] inline void unrolled(Body&& body) {
  static_assert(count % 4 == 0);
  for (std::size_t i = 0; i < count; i += 4) {
    body(i);
    body(i + 1);
    body(i + 2);
    body(i + 3);
  }
}

// Of its own, so that the loops have the registers to themselves.
template <class Subject>
[[gnu::noinline]] Nanoseconds pass(const by_adapter* adapter, std::size_t size,
                                   std::array<void*, blocks_a_pass>& blocks) {
  const std::uint64_t begun = base::ticks_fenced();
  std::uint64_t allocated = 0;
  {
    Subject subject(adapter);
    unrolled<blocks_a_pass>([&](std::size_t i) { blocks[i] = subject.allocate(size); });
    allocated = base::ticks_fenced();
    unrolled<blocks_a_pass>([&](std::size_t i) { subject.free(blocks[i], size, alignof(std::max_align_t)); });
  }
  const std::uint64_t freed = base::ticks_fenced();
  Subject::end_frame();
  return {nanoseconds(begun, allocated) / blocks_a_pass, nanoseconds(allocated, freed) / blocks_a_pass};
}

template <class Subject>
Nanoseconds run(const by_adapter* adapter, std::size_t size) {
  std::array<void*, blocks_a_pass> blocks;
  Medians medians;
  for (int i = 0; i < passes; ++i) {
    const Nanoseconds one = pass<Subject>(adapter, size, blocks);
    if (i >= warm_up) {
      medians.add(one);
    }
  }
  return medians.get();
}

void walk(const std::vector<std::uint64_t>& memory) {
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < memory.size(); i += 64 / sizeof memory[0]) {
    sum += memory[i];
  }
  asm volatile("" : : "r"(sum));
}

template <class Subject>
[[gnu::noinline]] Nanoseconds frame(const by_adapter* adapter, const bench::FrameBlock* wanted,
                                    std::array<void*, blocks_a_frame>& blocks) {
  const std::uint64_t begun = base::ticks_fenced();
  std::uint64_t allocated = 0;
  {
    Subject subject(adapter);
    unrolled<blocks_a_frame>([&](std::size_t i) {
      // What malloc aligns to anyway is asked of malloc, as a program would.
      if (wanted[i].alignment <= alignof(std::max_align_t)) [[likely]] {
        blocks[i] = subject.allocate(wanted[i].size);
      } else {
        blocks[i] = subject.allocate(wanted[i].size, wanted[i].alignment);
      }
    });
    allocated = base::ticks_fenced();
    unrolled<blocks_a_frame>([&](std::size_t i) { subject.free(blocks[i], wanted[i].size, wanted[i].alignment); });
  }
  const std::uint64_t freed = base::ticks_fenced();
  Subject::end_frame();
  const std::uint64_t ended = base::ticks_fenced();
  return {nanoseconds(begun, allocated) / blocks_a_frame, nanoseconds(allocated, freed) / blocks_a_frame,
          nanoseconds(freed, ended) / blocks_a_frame};
}

template <class Subject>
Nanoseconds run_frames(const by_adapter* adapter, const std::vector<bench::FrameBlock>& taken, std::size_t walked) {
  const std::vector<std::uint64_t> others(walked / sizeof(std::uint64_t), 1);
  std::array<void*, blocks_a_frame> blocks;
  Medians medians;
  std::size_t first = 0;
  for (int i = 0; i < frames; ++i, first += blocks_a_frame) {
    if (first + blocks_a_frame > taken.size()) {
      first = 0;
    }
    walk(others);
    const Nanoseconds one = frame<Subject>(adapter, &taken[first], blocks);
    if (i >= warm_up) {
      medians.add(one);
    }
  }
  return medians.get();
}

const by_adapter* load(const char* path) {
  void* const handle = dlopen(path, RTLD_NOW);
  if (handle == nullptr) {
    std::fprintf(stderr, "blockyard: %s\n", dlerror());
    std::exit(1);
  }
  const by_adapter* const adapter = reinterpret_cast<const by_adapter* (*)()>(dlsym(handle, "by_adapter_get"))();
  char error[256] = "";
  by_adapter_setup setup{};
  setup.abi = BY_ADAPTER_ABI;
  setup.threads = 4;
  setup.peak_bytes = setup.pool_bytes = std::size_t{64} << 20;
  setup.options = "";
  setup.error = error;
  setup.error_bytes = sizeof error;
  if (adapter->init(&setup) != 0) {
    std::fprintf(stderr, "blockyard: %s\n", error);
    std::exit(1);
  }
  return adapter;
}

// Calls what(), made for the class that `subject` names.
template <class What>
Nanoseconds with(std::string_view subject, const by_adapter* adapter, What&& what) {
  if (subject == "nothing") {
    return what.template operator()<bench::Nothing>();
  }
  if (subject == "temp") {
    return what.template operator()<bench::Temp>();
  }
  if (subject == "temp-cursor") {
    return what.template operator()<bench::TempWithCursor>();
  }
  if (subject == "temp-job") {
    return what.template operator()<bench::TempJob>();
  }
  return (adapter->flags & BY_ADAPTER_SIZED_FREE) != 0 ? what.template operator()<bench::SizedAdapter>()
                                                       : what.template operator()<bench::Adapter>();
}

int run_frames_of(std::string_view subject, const by_adapter* adapter, const char* journal, std::size_t walked) {
  std::vector<bench::FrameBlock> taken;
  try {
    taken = bench::read_frame_blocks(journal, largest_block);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "blockyard: %s\n", error.what());
    return 1;
  }
  if (taken.size() < blocks_a_frame) {
    std::fprintf(stderr, "blockyard: %s has fewer than %zu blocks that live within a frame\n", journal, blocks_a_frame);
    return 1;
  }
  if (adapter != nullptr && adapter->thread_start != nullptr) {
    adapter->thread_start();
  }
  const Nanoseconds found =
      with(subject, adapter, [&]<class Subject>() { return run_frames<Subject>(adapter, taken, walked); });
  std::printf("%.4f %.4f %.4f\n", found.allocate, found.free, found.end);
  return 0;
}

}  // namespace

int main(int count, char** arguments) {
  const bool by_frames = count == 5 && std::string_view(arguments[2]) == "frames";
  if (count != 4 && !by_frames) {
    std::fprintf(stderr,
                 "usage: bench_lifetime nothing|temp|temp-cursor|temp-job|ADAPTER THREADS SIZE\n"
                 "       bench_lifetime nothing|temp|temp-cursor|temp-job|ADAPTER frames JOURNAL WALK\n");
    return 2;
  }
  const std::string_view subject = arguments[1];
  constexpr std::array<std::string_view, 4> built_in{"nothing", "temp", "temp-cursor", "temp-job"};
  const bool is_built_in = std::find(built_in.begin(), built_in.end(), subject) != built_in.end();
  const by_adapter* const adapter = is_built_in ? nullptr : load(arguments[1]);
  if (by_frames) {
    return run_frames_of(subject, adapter, arguments[3], std::strtoul(arguments[4], nullptr, 10));
  }
  const auto threads = static_cast<std::size_t>(std::strtoul(arguments[2], nullptr, 10));
  const std::size_t size = std::strtoul(arguments[3], nullptr, 10);
  std::vector<Nanoseconds> results(threads);
  std::vector<std::thread> workers;
  std::barrier start(static_cast<std::ptrdiff_t>(threads));
  for (std::size_t i = 0; i < threads; ++i) {
    workers.emplace_back([&, i] {
      if (adapter != nullptr && adapter->thread_start != nullptr) {
        adapter->thread_start();
      }
      start.arrive_and_wait();
      results[i] = with(subject, adapter, [&]<class Subject>() { return run<Subject>(adapter, size); });
    });
  }
  for (std::thread& worker : workers) {
    worker.join();
  }
  double allocating = 0;
  double freeing = 0;
  for (const Nanoseconds& one : results) {
    allocating += one.allocate / static_cast<double>(threads);
    freeing += one.free / static_cast<double>(threads);
  }
  std::printf("%.4f %.4f\n", allocating, freeing);
  return 0;
}
