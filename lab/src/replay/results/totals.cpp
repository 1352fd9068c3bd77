#include "replay/results/totals.hpp"

#include <algorithm>

namespace blockyard::replay {

void Totals::count_threads(const Session& session) {
  std::uint64_t end = session.clock_start;
  std::uint64_t walks = 0;
  std::uint64_t complete_walks = 0;
  causes.source = session.causes.source;
  for (const ReplayThread& thread : session.threads) {
    end = std::max(end, thread.end_ticks);
    order_waits += thread.order_waits;
    walks += thread.polluter.walks();
    complete_walks += thread.polluter.complete();
    if (stream) {
      stream->outruns += thread.outruns;
      stream->waited_ns += session.ns(thread.outrun_ticks);
    }
    causes.events += thread.cause_reader.events();
    if (thread.cause_reader.source() < causes.source) {
      causes.source = thread.cause_reader.source();
      causes.refused = thread.cause_reader.refused();
    }
  }
  wall_ns = session.ns(end - session.clock_start);
  if (walks != 0) polluted = static_cast<double>(complete_walks) / static_cast<double>(walks);
}

}  // namespace blockyard::replay
