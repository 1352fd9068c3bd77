// One measured case: a workload on one implementation, in its own process. Prints "phase value" lines: CPU nanoseconds
// per operation, or bytes per element.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace blockyard::bench {

/// CPU time of all threads of the process, ns; of the calling thread.
double cpu_ns();
double thread_cpu_ns();

/// Resident bytes of the process.
std::size_t resident_bytes();
/// Their maximum so far.
std::size_t peak_resident_bytes();

/// Prints one phase: CPU time of `work` over `operations`.
template <class Work>
void phase(const char* name, std::size_t operations, Work&& work);
void print(const std::string& name, double value);

/// Keeps a result alive.
inline void keep(std::uint64_t value) { asm volatile("" ::"r"(value)); }

struct Case {
  std::string_view workload;
  std::string_view implementation;
  void (*run)(std::size_t n);
};

std::vector<Case> list_cases();
std::vector<Case> hash_map_cases();
std::vector<Case> key_cases();
std::vector<Case> ordered_cases();
std::vector<Case> block_cases();
std::vector<Case> thread_cases();

template <class Work>
void phase(const char* name, std::size_t operations, Work&& work) {
  const double begin = cpu_ns();
  work();
  print(name, (cpu_ns() - begin) / static_cast<double>(operations));
}

}  // namespace blockyard::bench
