// bench_heap ADAPTER WORKLOAD THREADS SECONDS [OPTIONS]: one workload on one allocator. Prints `NAME VALUE` lines.
#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>

#include "bench.hpp"

int main(int count, char** arguments) {
  if (count < 5) {
    std::fprintf(stderr, "usage: bench_heap ADAPTER WORKLOAD THREADS SECONDS [OPTIONS]\n");
    return 2;
  }
  void* const object = dlopen(arguments[1], RTLD_NOW | RTLD_LOCAL);
  const auto get =
      object == nullptr ? nullptr : reinterpret_cast<const by_adapter* (*)()>(dlsym(object, "by_adapter_get"));
  if (get == nullptr) {
    std::fprintf(stderr, "blockyard: %s is no adapter: %s\n", arguments[1], dlerror());
    return 1;
  }
  bench::adapter = get();
  const auto threads = static_cast<unsigned>(std::strtoul(arguments[3], nullptr, 10));
  char error[256] = "";
  const by_adapter_setup setup{.abi = BY_ADAPTER_ABI,
                               .threads = threads + 1,
                               .peak_bytes = std::uint64_t{256} << 20,
                               .peak_blocks = 1'000'000,
                               .pool_bytes = std::uint64_t{1} << 30,
                               .populate = 0,
                               .options = count > 5 ? arguments[5] : "",
                               .error = error,
                               .error_bytes = sizeof error};
  if (bench::adapter->init(&setup) != 0) {
    std::fprintf(stderr, "blockyard: %s\n", error);
    return 1;
  }
  bench::locked = (bench::adapter->flags & BY_ADAPTER_NEEDS_LOCK) != 0;
  bench::thread_start();
  const double seconds = std::strtod(arguments[4], nullptr);
  if (!bench::run_single(arguments[2]) && !bench::run_threads(arguments[2], threads, seconds) &&
      !bench::run_waits(arguments[2], seconds)) {
    std::fprintf(stderr, "blockyard: there is no workload %s\n", arguments[2]);
    return 2;
  }
  std::fflush(stdout);
  // Allocators' own destructors are not what is measured.
  std::_Exit(0);
}
