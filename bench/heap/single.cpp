// One thread: the tight loop of a 64-byte pair.
#include <algorithm>
#include <array>
#include <cstdio>
#include <cstring>

#include "bench.hpp"

namespace bench {
namespace {

// Nothing but the two calls. The best of nine rounds: what is left out is interruptions.
void pair() {
  constexpr int pairs = 2'000'000;
  const by_adapter& a = *adapter;
  const bool sized = (a.flags & BY_ADAPTER_SIZED_FREE) != 0;
  std::array<double, 9> rounds{};
  for (double& round : rounds) {
    const std::uint64_t begun = now_ns();
    if (sized) {
      for (int i = 0; i < pairs; ++i) {
        a.free_sized(a.allocate(64), 64, 16);
      }
    } else {
      for (int i = 0; i < pairs; ++i) {
        a.free(a.allocate(64));
      }
    }
    round = static_cast<double>(now_ns() - begun) / pairs;
  }
  std::printf("ns_a_pair %.4f\n", *std::min_element(rounds.begin(), rounds.end()));
}

}  // namespace

bool run_single(const char* workload) {
  if (std::strcmp(workload, "pair") != 0) {
    return false;
  }
  pair();
  return true;
}

}  // namespace bench
