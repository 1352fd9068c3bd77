// bench_heap ADAPTER WORKLOAD THREADS SECONDS [OPTIONS]: one workload on one allocator. Prints `NAME VALUE` lines.
#include <dlfcn.h>
#include <sys/resource.h>

#include <cstdio>
#include <cstdlib>

#include "bench.hpp"

namespace {

double system_ms() {
  rusage used{};
  getrusage(RUSAGE_SELF, &used);
  return static_cast<double>(used.ru_stime.tv_sec) * 1e3 + static_cast<double>(used.ru_stime.tv_usec) / 1e3;
}

// Not getrusage's, which counts what the process before exec had resident.
double peak_mib() {
  std::FILE* const file = std::fopen("/proc/self/status", "r");
  char line[256];
  unsigned long kib = 0;
  while (std::fgets(line, sizeof line, file) != nullptr && std::sscanf(line, "VmHWM: %lu", &kib) != 1) {
  }
  std::fclose(file);
  return static_cast<double>(kib) / 1024;
}

}  // namespace

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
  const double system_before = system_ms();
  const std::uint64_t begun = bench::now_ns();
  if (!bench::run_single(arguments[2]) && !bench::run_loads(arguments[2]) &&
      !bench::run_threads(arguments[2], threads, seconds) && !bench::run_waits(arguments[2], seconds)) {
    std::fprintf(stderr, "blockyard: there is no workload %s\n", arguments[2]);
    return 2;
  }
  std::printf("ms %.3f\nsystem_ms %.3f\n", static_cast<double>(bench::now_ns() - begun) / 1e6,
              system_ms() - system_before);
  std::printf("peak_mib %.3f\n", peak_mib());
  std::fflush(stdout);
  // Allocators' own destructors are not what is measured.
  std::_Exit(0);
}
