#include "replay/run/drive_rerouted.hpp"

#include "replay/run/driver.hpp"
#include "replay/run/special_ops.hpp"
#include "replay/run/thread_routes.hpp"

namespace blockyard::replay {
namespace {

template <bool timed, bool locked, bool traced>
void follow(Session& session, ReplayThread& thread) {
  Driver<timed, locked, traced, ThreadRoutes> driver(session, thread);
  for_each_event(
      session, thread, [&](Record& record, Slot& slot) { driver.step(record, slot); },
      SpecialOps(driver.routes(), [&](Turn& turn, Record& record) { driver.end_frame(turn, record); }));
}

}  // namespace

void drive_rerouted(Session& session, ReplayThread& thread) {
  if (session.timed) {
    session.locked ? follow<true, true, false>(session, thread) : follow<true, false, false>(session, thread);
  } else if (session.board != nullptr) {
    session.locked ? follow<false, true, true>(session, thread) : follow<false, false, true>(session, thread);
  } else {
    session.locked ? follow<false, true, false>(session, thread) : follow<false, false, false>(session, thread);
  }
}

}  // namespace blockyard::replay
