#include "replay/run/cores.hpp"

#include <sched.h>

#include <algorithm>
#include <cstddef>
#include <vector>

#include "replay/run/session.hpp"

namespace blockyard::replay {
namespace {

cpu_set_t allowed;  // when cores were given

}  // namespace

void give_cores(std::span<ReplayThread> threads) {
  if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) return;  // a machine of more than 1024 cores
  std::vector<int> cores;
  for (int core = 0; core < CPU_SETSIZE; ++core) {
    if (CPU_ISSET(static_cast<std::size_t>(core), &allowed)) cores.push_back(core);
  }
  std::vector<ReplayThread*> busiest;
  for (ReplayThread& thread : threads) busiest.push_back(&thread);
  std::stable_sort(busiest.begin(), busiest.end(),
                   [](const ReplayThread* one, const ReplayThread* other) { return one->count > other->count; });
  for (std::size_t place = 0; place < busiest.size(); ++place) busiest[place]->core = cores[place % cores.size()];
}

void stay_on(int core) {
  if (core < 0) return;
  cpu_set_t only;
  CPU_ZERO(&only);
  CPU_SET(static_cast<std::size_t>(core), &only);
  sched_setaffinity(0, sizeof only, &only);  // a core that has gone offline meanwhile: the thread goes where it can
}

void leave(int core) {
  if (core >= 0) sched_setaffinity(0, sizeof allowed, &allowed);
}

}  // namespace blockyard::replay
