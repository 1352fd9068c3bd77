#include "replay/run/burst.hpp"

#include "replay/run/timed_call.hpp"

namespace blockyard::replay {

void end_burst(Record& last, std::uint64_t begin, const Session& session, CauseReader& cause_reader) {
  const std::uint64_t end = clock::ticks_fenced();
  std::uint64_t ticks = end - begin;
  std::uint64_t away = 0;
  std::uint8_t causes = 0;
  if (cause_reader.wanted(begin, end)) {
    causes = cause_reader.read(begin, end, cause::fault_in_call);
    // A thread that slept waited for a lock of the allocator's, and that is the allocator's time.
    const bool kept_away = (causes & cause::machine) != 0 && (causes & cause::slept) == 0;
    if (kept_away) away = std::min(ticks, cause_reader.lost_ticks());
    ticks -= away;
  } else {
    cause_reader.skip(end);
  }
  last.kind = last.kind < first_special_kind ? kind_burst_end : kind_burst_end_apart;
  last.cause = causes;
  last.size_low = saturated(away);
  last.burst = {begin - session.clock_start, ticks - std::min<std::uint64_t>(ticks, session.causes.floor_call)};
}

}  // namespace blockyard::replay
