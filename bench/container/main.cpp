// bench_containers WORKLOAD IMPLEMENTATION N: runs one case.
// bench_containers --list: names all cases.
// bench_containers --bring-in BYTES: touches memory and ends.
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <ctime>

#include "case.hpp"

namespace blockyard::bench {

namespace {

double read_clock(clockid_t clock) {
  timespec now{};
  clock_gettime(clock, &now);
  return static_cast<double>(now.tv_sec) * 1e9 + static_cast<double>(now.tv_nsec);
}

}  // namespace

double cpu_ns() { return read_clock(CLOCK_PROCESS_CPUTIME_ID); }

double thread_cpu_ns() { return read_clock(CLOCK_THREAD_CPUTIME_ID); }

std::size_t resident_bytes() {
  std::FILE* const file = std::fopen("/proc/self/statm", "r");
  std::size_t total = 0;
  std::size_t resident = 0;
  if (file == nullptr || std::fscanf(file, "%zu %zu", &total, &resident) != 2) {
    std::abort();
  }
  std::fclose(file);
  return resident * static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
}

std::size_t peak_resident_bytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<std::size_t>(usage.ru_maxrss) * 1024;
}

namespace {

// A hypervisor may take back its guest's free memory (page reporting, ballooning). The first touch of such memory costs
// ten times as much. Memory that was just touched and released is still the guest's.
bool bring_in(std::size_t bytes) {
  void* const mapped = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapped == MAP_FAILED) {
    return false;
  }
  madvise(mapped, bytes, MADV_HUGEPAGE);
  for (std::size_t i = 0; i < bytes; i += 4096) {
    static_cast<volatile char*>(mapped)[i] = 1;
  }
  return true;
}

}  // namespace

void print(const std::string& name, double value) { std::printf("%s %.4f\n", name.c_str(), value); }

}  // namespace blockyard::bench

int main(int count, char** arguments) {
  using namespace blockyard::bench;
  std::vector<Case> cases;
  for (const auto& group :
       {list_cases(), hash_map_cases(), key_cases(), ordered_cases(), block_cases(), thread_cases()}) {
    cases.insert(cases.end(), group.begin(), group.end());
  }
  if (count == 2 && std::string_view(arguments[1]) == "--list") {
    for (const Case& one : cases) {
      std::printf("%s %s\n", one.workload.data(), one.implementation.data());
    }
    return 0;
  }
  if (count == 3 && std::string_view(arguments[1]) == "--bring-in") {
    return bring_in(std::strtoull(arguments[2], nullptr, 10)) ? 0 : 1;
  }
  if (count != 4) {
    std::fprintf(stderr, "usage: bench_containers WORKLOAD IMPLEMENTATION N | --list | --bring-in BYTES\n");
    return 2;
  }
  for (const Case& one : cases) {
    if (one.workload == arguments[1] && one.implementation == arguments[2]) {
      one.run(std::strtoull(arguments[3], nullptr, 10));
      return 0;
    }
  }
  std::fprintf(stderr, "blockyard: no case %s on %s\n", arguments[1], arguments[2]);
  return 1;
}
