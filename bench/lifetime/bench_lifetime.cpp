// What a block costs to allocate and to free. SUBJECT is temp, temp-job or the path of an adapter.
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
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <string_view>
#include <thread>
#include <vector>

#include "blockyard/adapter.h"
#include "blockyard/lifetime.hpp"
#include "frame_blocks.hpp"

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

double median(std::vector<double>& values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

double now() {
  return std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

template <class Allocate, class Free, class End>
Nanoseconds run(Allocate&& allocate_one, Free&& free_one, End&& end_pass) {
  std::array<void*, blocks_a_pass> blocks;
  std::vector<double> allocating;
  std::vector<double> freeing;
  for (int pass = 0; pass < passes; ++pass) {
    const double begun = now();
    for (void*& block : blocks) {
      block = allocate_one();
    }
    const double allocated = now();
    for (void* block : blocks) {
      free_one(block);
    }
    const double freed = now();
    end_pass();
    if (pass >= warm_up) {
      allocating.push_back((allocated - begun) / blocks_a_pass);
      freeing.push_back((freed - allocated) / blocks_a_pass);
    }
  }
  return {median(allocating), median(freeing)};
}

void walk(const std::vector<std::uint64_t>& memory) {
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < memory.size(); i += 64 / sizeof memory[0]) {
    sum += memory[i];
  }
  asm volatile("" : : "r"(sum));
}

template <class Allocate, class Free, class End>
Nanoseconds run_frames(const std::vector<bench::FrameBlock>& taken, std::size_t walked, Allocate&& allocate_one,
                       Free&& free_one, End&& end_frame) {
  const std::vector<std::uint64_t> others(walked / sizeof(std::uint64_t), 1);
  std::array<void*, blocks_a_frame> blocks;
  std::vector<double> allocating;
  std::vector<double> freeing;
  std::vector<double> ending;
  std::size_t first = 0;
  for (int frame = 0; frame < frames; ++frame, first += blocks_a_frame) {
    if (first + blocks_a_frame > taken.size()) {
      first = 0;
    }
    const bench::FrameBlock* const wanted = &taken[first];
    walk(others);
    const double begun = now();
    for (std::size_t i = 0; i < blocks_a_frame; ++i) {
      blocks[i] = allocate_one(wanted[i]);
    }
    const double allocated = now();
    for (std::size_t i = 0; i < blocks_a_frame; ++i) {
      free_one(blocks[i], wanted[i]);
    }
    const double freed = now();
    end_frame();
    const double ended = now();
    if (frame >= warm_up) {
      allocating.push_back((allocated - begun) / blocks_a_frame);
      freeing.push_back((freed - allocated) / blocks_a_frame);
      ending.push_back((ended - freed) / blocks_a_frame);
    }
  }
  return {median(allocating), median(freeing), median(ending)};
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

Nanoseconds measure(std::string_view subject, const by_adapter* adapter, std::size_t size) {
  const auto nothing = [] {};
  if (subject == "temp") {
    return run([=] { return temp_allocate(size, 16); }, [](void* block) { temp_deallocate(block); },
               by_thread_end_frame);
  }
  if (subject == "temp-job") {
    return run([=] { return allocate(size, 16, Lifetime::temp_job); },
               [](void* block) { deallocate(block, Lifetime::temp_job); }, nothing);
  }
  if ((adapter->flags & BY_ADAPTER_SIZED_FREE) != 0) {
    return run([=] { return adapter->allocate(size); }, [=](void* block) { adapter->free_sized(block, size, 16); },
               nothing);
  }
  return run([=] { return adapter->allocate(size); }, [=](void* block) { adapter->free(block); }, nothing);
}

Nanoseconds measure_frames(std::string_view subject, const by_adapter* adapter,
                           const std::vector<bench::FrameBlock>& taken, std::size_t walked) {
  using bench::FrameBlock;
  const auto nothing = [] {};
  const auto is_natural = [](FrameBlock block) { return block.alignment <= alignof(std::max_align_t); };
  if (subject == "temp") {
    return run_frames(
        taken, walked,
        [=](FrameBlock wanted) {
          return is_natural(wanted) ? temp_allocate(wanted.size) : temp_allocate(wanted.size, wanted.alignment);
        },
        [](void* block, FrameBlock) { temp_deallocate(block); }, by_thread_end_frame);
  }
  if (subject == "temp-job") {
    return run_frames(
        taken, walked,
        [=](FrameBlock wanted) {
          return is_natural(wanted) ? temp_job_allocate(wanted.size) : temp_job_allocate(wanted.size, wanted.alignment);
        },
        [](void* block, FrameBlock) { temp_job_deallocate(block); }, nothing);
  }
  const auto allocate_one = [=](FrameBlock wanted) {
    return is_natural(wanted) ? adapter->allocate(wanted.size)
                              : adapter->allocate_aligned(wanted.alignment, wanted.size);
  };
  if ((adapter->flags & BY_ADAPTER_SIZED_FREE) != 0) {
    return run_frames(
        taken, walked, allocate_one,
        [=](void* block, FrameBlock freed) { adapter->free_sized(block, freed.size, freed.alignment); }, nothing);
  }
  return run_frames(
      taken, walked, allocate_one, [=](void* block, FrameBlock) { adapter->free(block); }, nothing);
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
  const Nanoseconds found = measure_frames(subject, adapter, taken, walked);
  std::printf("%.4f %.4f %.4f\n", found.allocate, found.free, found.end);
  return 0;
}

}  // namespace

int main(int count, char** arguments) {
  const bool by_frames = count == 5 && std::string_view(arguments[2]) == "frames";
  if (count != 4 && !by_frames) {
    std::fprintf(stderr,
                 "usage: bench_lifetime temp|temp-job|ADAPTER THREADS SIZE\n"
                 "       bench_lifetime temp|temp-job|ADAPTER frames JOURNAL WALK\n");
    return 2;
  }
  const std::string_view subject = arguments[1];
  const by_adapter* const adapter = subject == "temp" || subject == "temp-job" ? nullptr : load(arguments[1]);
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
      results[i] = measure(subject, adapter, size);
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
