// Measures what it costs to allocate and to free a block. SUBJECT is temp, temp-cursor (temp through a temp_cursor),
// temp-job, the path of an adapter, or `nothing`: the loop alone, whose cost is part of every other figure. The cost of
// reading the clock is measured before each timed stretch and subtracted.
//
// bench_lifetime SUBJECT THREADS SIZE: 1000 blocks of one size, freed in their order. Prints mid-means over all passes:
// ns per block to allocate and to free, and ns per stretch for the clock.
//
// bench_lifetime SUBJECT frames JOURNAL WALK: frames of 500 blocks with sizes and alignments, in their order, that a
// real program allocated and freed within its frames. Between two frames it reads WALK bytes of other memory, as a game
// does. Prints ns per block to allocate, to free and for the end of the frame; and ns for the clock.
//
// bench_lifetime SUBJECT program JOURNAL: the same blocks, written to and freed in the program's order, on a heap in
// the program's state: all other blocks are allocated and freed where the journal has them, while the clock stands.
#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <barrier>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <optional>
#include <string_view>
#include <thread>
#include <vector>

#include "blockyard/adapter.h"
#include "clock/clock.hpp"
#include "frame_blocks.hpp"
#include "other_blocks.hpp"
#include "subjects.hpp"

namespace {

using namespace blockyard;

constexpr std::size_t blocks_a_pass = 1000;
constexpr int passes = 2001;  // the first hundred warm up
constexpr int warm_up = 100;

constexpr std::size_t blocks_a_frame = 500;
static_assert(blocks_a_pass % 4 == 0 && blocks_a_frame % 4 == 0);  // by_fours leaves no rest of them
constexpr int frames = 1200;
constexpr int program_runs = 9;  // the first warms up
constexpr std::uint32_t largest_block = 1024;

struct Nanoseconds {
  double allocate;  ///< per block
  double free;      ///< per block
  double end;       ///< of the frame, per block
  double clock;     ///< per stretch
};

/// The timed stretches of many passes.
class Stretches {
 public:
  struct Ticks {
    std::uint64_t allocate;
    std::uint64_t free;
    std::uint64_t end;    ///< of the frame
    std::uint64_t clock;  ///< two empty stretches
  };

  explicit Stretches(std::size_t blocks) : blocks_(blocks) {}
  void add(const Ticks& one) {
    allocate_.push_back(one.allocate);
    free_.push_back(one.free);
    end_.push_back(one.end);
    clock_.push_back(one.clock);
  }

  /// Means per block, less the cost of the clock.
  Nanoseconds get() {
    const double ticks_per_ns = clock::ticks_per_ns();
    const double clock = mean_of_many(clock_) / 2;
    const auto a_block = [&](std::vector<std::uint64_t>& ticks) {
      return (mid_mean(ticks) - clock) / ticks_per_ns / static_cast<double>(blocks_);
    };
    return {a_block(allocate_), a_block(free_), a_block(end_), clock / ticks_per_ns};
  }

 private:
  /// The mean of the middle half. Like a median, it leaves out passes that were interrupted; unlike one, it is not
  /// limited to the clock's steps, which are 10 ns on some processors.
  static double mid_mean(std::vector<std::uint64_t>& values) {
    return mean_of(values, values.size() / 4, values.size() / 4);
  }

  /// The mean of all but the longest hundredth: an empty stretch takes one of few values, so a mid-mean would be
  /// coarse.
  static double mean_of_many(std::vector<std::uint64_t>& values) { return mean_of(values, 0, values.size() / 100); }

  static double mean_of(std::vector<std::uint64_t>& values, std::size_t least, std::size_t most) {
    std::sort(values.begin(), values.end());
    double sum = 0;
    for (std::size_t i = least; i < values.size() - most; ++i) {
      sum += static_cast<double>(values[i]);
    }
    return sum / static_cast<double>(values.size() - least - most);
  }

  std::size_t blocks_;
  std::vector<std::uint64_t> allocate_;
  std::vector<std::uint64_t> free_;
  std::vector<std::uint64_t> end_;
  std::vector<std::uint64_t> clock_;
};

// Four blocks share the loop's own cost, for every subject in the same way. Unrolled by hand, since compilers unroll
// only some loops, and turn large bodies into functions.
#define BY_IN_PLACE __attribute__((always_inline))
/// Calls for `from` and on, while four are left before `end`. Returns where it stopped.
template <class Body>
[[gnu::always_inline]] inline std::size_t by_fours(std::size_t from, std::size_t end, Body&& body) {
  std::size_t i = from;
  for (; i + 4 <= end; i += 4) {
    body(i);
    body(i + 1);
    body(i + 2);
    body(i + 3);
  }
  return i;
}

// A separate function, so that the loops can use all registers.
template <class Subject>
[[gnu::noinline]] Stretches::Ticks pass(const by_adapter* adapter, std::size_t size,
                                        std::array<void*, blocks_a_pass>& blocks) {
  const std::uint64_t before = clock::ticks_fenced();
  const std::uint64_t begun = clock::ticks_fenced();
  std::uint64_t allocated = 0;
  std::uint64_t freeing = 0;
  {
    Subject subject(adapter);
    by_fours(0, blocks_a_pass, [&](std::size_t i) BY_IN_PLACE { blocks[i] = subject.allocate(size); });
    allocated = clock::ticks_fenced();
    freeing = clock::ticks_fenced();
    by_fours(0, blocks_a_pass,
             [&](std::size_t i) BY_IN_PLACE { subject.free(blocks[i], size, alignof(std::max_align_t)); });
  }
  const std::uint64_t freed = clock::ticks_fenced();
  Subject::end_frame();
  const std::uint64_t ended = clock::ticks_fenced();
  return {allocated - begun, freed - freeing, ended - freed, (begun - before) + (freeing - allocated)};
}

template <class Subject>
Nanoseconds run(const by_adapter* adapter, std::size_t size) {
  std::array<void*, blocks_a_pass> blocks;
  Stretches stretches(blocks_a_pass);
  for (int i = 0; i < passes; ++i) {
    const Stretches::Ticks one = pass<Subject>(adapter, size, blocks);
    if (i >= warm_up) {
      stretches.add(one);
    }
  }
  return stretches.get();
}

void walk(const std::vector<std::uint64_t>& memory) {
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < memory.size(); i += 64 / sizeof memory[0]) {
    sum += memory[i];
  }
  asm volatile("" : : "r"(sum));
}

/// What one frame allocates and frees. A program has these lists in its code, so they are in the caches when the clock
/// starts.
struct Frame {
  std::array<bench::FrameBlock, blocks_a_frame> wanted;
  std::array<std::size_t, blocks_a_frame> order;  ///< of the frees
  std::array<bench::FrameBlock, blocks_a_frame> wanted_back;
  std::array<void*, blocks_a_frame> blocks;
  std::array<void*, blocks_a_frame> blocks_back;
  /// Where runs of blocks end that malloc aligns well enough. After each run but the last, one block follows that needs
  /// an aligned allocation. A program's code knows which call it makes, so the loops must not test each block.
  std::vector<std::size_t> runs;

  void take(const bench::FrameBlocks& program, std::size_t first, bool in_the_programs_order) {
    for (std::size_t i = 0; i < blocks_a_frame; ++i) {
      wanted[i] = program.taken[first + i];
      order[i] = i;
    }
    if (in_the_programs_order) {
      std::sort(order.begin(), order.end(),
                [&](std::size_t a, std::size_t b) { return program.freed[first + a] < program.freed[first + b]; });
    }
    for (std::size_t i = 0; i < blocks_a_frame; ++i) {
      wanted_back[i] = wanted[order[i]];
    }
    blocks.fill(nullptr);
    runs.clear();
    for (std::size_t i = 0; i < blocks_a_frame; ++i) {
      if (wanted[i].alignment > alignof(std::max_align_t)) {
        runs.push_back(i);
      }
    }
    runs.push_back(blocks_a_frame);
  }

  void write() {
    for (std::size_t i = 0; i < blocks_a_frame; ++i) {
      std::memset(blocks[i], 1, wanted[i].size);
    }
  }
  void sort_back() {
    for (std::size_t i = 0; i < blocks_a_frame; ++i) {
      blocks_back[i] = blocks[order[i]];
    }
  }
};

template <class Subject>
[[gnu::noinline]] Stretches::Ticks time_frame(const by_adapter* adapter, Frame& frame, bool writes) {
  const std::uint64_t before = clock::ticks_fenced();
  const std::uint64_t begun = clock::ticks_fenced();
  std::uint64_t allocated = 0;
  std::uint64_t used = 0;
  std::uint64_t freeing = 0;
  {
    Subject subject(adapter);
    std::size_t next = 0;
    for (const std::size_t* end = frame.runs.data();; ++end, ++next) {
      next = by_fours(next, *end,
                      [&](std::size_t n) BY_IN_PLACE { frame.blocks[n] = subject.allocate(frame.wanted[n].size); });
      for (; next < *end; ++next) {
        frame.blocks[next] = subject.allocate(frame.wanted[next].size);
      }
      if (next == blocks_a_frame) {
        break;
      }
      frame.blocks[next] = subject.allocate(frame.wanted[next].size, frame.wanted[next].alignment);
    }
    allocated = clock::ticks_fenced();
    if (writes) {
      frame.write();
    }
    frame.sort_back();
    used = clock::ticks_fenced();
    freeing = clock::ticks_fenced();
    by_fours(0, blocks_a_frame, [&](std::size_t i) BY_IN_PLACE {
      const bench::FrameBlock& wanted = frame.wanted_back[i];
      subject.free(frame.blocks_back[i], wanted.size, wanted.alignment);
    });
  }
  const std::uint64_t freed = clock::ticks_fenced();
  Subject::end_frame();
  const std::uint64_t ended = clock::ticks_fenced();
  return {allocated - begun, freed - freeing, ended - freed, (begun - before) + (freeing - used)};
}

template <class Subject>
Nanoseconds run_frames(const by_adapter* adapter, const bench::FrameBlocks& program, std::size_t walked) {
  const std::vector<std::uint64_t> others(walked / sizeof(std::uint64_t), 1);
  Frame frame;
  Stretches stretches(blocks_a_frame);
  std::size_t first = 0;
  for (int i = 0; i < frames; ++i, first += blocks_a_frame) {
    if (first + blocks_a_frame > program.taken.size()) {
      first = 0;
    }
    walk(others);
    frame.take(program, first, false);
    const Stretches::Ticks one = time_frame<Subject>(adapter, frame, false);
    if (i >= warm_up) {
      stretches.add(one);
    }
  }
  return stretches.get();
}

template <class Subject>
Nanoseconds run_program(const by_adapter* adapter, const bench::FrameBlocks& program) {
  bench::OtherBlocks others(adapter, program);
  Frame frame;
  Stretches stretches(blocks_a_frame);
  for (int i = 0; i < program_runs; ++i) {
    for (std::size_t first = 0; first + blocks_a_frame <= program.taken.size(); first += blocks_a_frame) {
      others.go_to(first);
      frame.take(program, first, true);
      const Stretches::Ticks one = time_frame<Subject>(adapter, frame, true);
      if (i > 0) {
        stretches.add(one);
      }
    }
    others.restart();
  }
  return stretches.get();
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

// Calls what() for the class that `subject` names.
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

// `walked` is empty for `program`.
int run_frames_of(std::string_view subject, const by_adapter* adapter, const char* journal,
                  std::optional<std::size_t> walked) {
  bench::FrameBlocks program;
  try {
    program = bench::read_frame_blocks(journal, largest_block);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "blockyard: %s\n", error.what());
    return 1;
  }
  if (program.taken.size() < blocks_a_frame) {
    std::fprintf(stderr, "blockyard: %s has fewer than %zu blocks that live within a frame\n", journal, blocks_a_frame);
    return 1;
  }
  if (adapter != nullptr && adapter->thread_start != nullptr) {
    adapter->thread_start();
  }
  const Nanoseconds found = with(subject, adapter, [&]<class Subject>() {
    return walked ? run_frames<Subject>(adapter, program, *walked) : run_program<Subject>(adapter, program);
  });
  std::printf("%.4f %.4f %.4f %.2f\n", found.allocate, found.free, found.end, found.clock);
  return 0;
}

}  // namespace

int main(int count, char** arguments) {
  const bool by_frames = count == 5 && std::string_view(arguments[2]) == "frames";
  const bool by_program = count == 4 && std::string_view(arguments[2]) == "program";
  if (count != 4 && !by_frames) {
    std::fprintf(stderr,
                 "usage: bench_lifetime nothing|temp|temp-cursor|temp-job|ADAPTER THREADS SIZE\n"
                 "       bench_lifetime nothing|temp|temp-cursor|temp-job|ADAPTER frames JOURNAL WALK\n"
                 "       bench_lifetime nothing|temp|temp-cursor|temp-job|ADAPTER program JOURNAL\n");
    return 2;
  }
  const std::string_view subject = arguments[1];
  constexpr std::array<std::string_view, 4> built_in{"nothing", "temp", "temp-cursor", "temp-job"};
  const bool is_built_in = std::find(built_in.begin(), built_in.end(), subject) != built_in.end();
  const by_adapter* const adapter = is_built_in ? nullptr : load(arguments[1]);
  if (by_frames) {
    return run_frames_of(subject, adapter, arguments[3], std::strtoul(arguments[4], nullptr, 10));
  }
  if (by_program) {
    return run_frames_of(subject, adapter, arguments[3], std::nullopt);
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
  Nanoseconds mean{};
  for (const Nanoseconds& one : results) {
    mean.allocate += one.allocate / static_cast<double>(threads);
    mean.free += one.free / static_cast<double>(threads);
    mean.end += one.end / static_cast<double>(threads);
    mean.clock += one.clock / static_cast<double>(threads);
  }
  std::printf("%.4f %.4f %.4f %.2f\n", mean.allocate, mean.free, mean.end, mean.clock);
  return 0;
}
