#include "replay/results/totals.hpp"

#include <algorithm>

namespace blockyard::replay {

void Totals::count_threads(const Session& session) {
  std::uint64_t end = session.clock_start;
  std::uint64_t walks = 0;
  std::uint64_t complete_walks = 0;
  looking.source = session.look.source;
  for (const ReplayThread& thread : session.threads) {
    end = std::max(end, thread.end_ticks);
    order_waits += thread.order_waits;
    walks += thread.polluter.walks();
    complete_walks += thread.polluter.complete();
    if (stream) {
      stream->outruns += thread.outruns;
      stream->waited_ns += session.ns(thread.outrun_ticks);
    }
    looking.events += thread.looker.events();
    if (thread.looker.source() < looking.source) {
      looking.source = thread.looker.source();
      looking.refused = thread.looker.refused();
    }
  }
  wall_ns = session.ns(end - session.clock_start);
  if (walks != 0) polluted = static_cast<double>(complete_walks) / static_cast<double>(walks);
}

}  // namespace blockyard::replay
