// bench_lifetime SUBJECT THREADS SIZE: prints the median nanoseconds to allocate and to free one block.
// SUBJECT is temp, temp-job or the path of an adapter. A pass allocates 1000 blocks and frees them in their order.
#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <barrier>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <thread>
#include <vector>

#include "blockyard/adapter.h"
#include "blockyard/lifetime.hpp"

namespace {

using namespace blockyard;

constexpr std::size_t blocks_a_pass = 1000;
constexpr int passes = 2001;  // the first hundred warm up
constexpr int warm_up = 100;

struct Nanoseconds {
  double allocate;
  double free;
};

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
  const auto median = [](std::vector<double>& values) {
    std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2), values.end());
    return values[values.size() / 2];
  };
  return {median(allocating), median(freeing)};
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

}  // namespace

int main(int count, char** arguments) {
  if (count != 4) {
    std::fprintf(stderr, "usage: bench_lifetime temp|temp-job|ADAPTER THREADS SIZE\n");
    return 2;
  }
  const std::string_view subject = arguments[1];
  const auto threads = static_cast<std::size_t>(std::strtoul(arguments[2], nullptr, 10));
  const std::size_t size = std::strtoul(arguments[3], nullptr, 10);
  const by_adapter* const adapter = subject == "temp" || subject == "temp-job" ? nullptr : load(arguments[1]);
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
