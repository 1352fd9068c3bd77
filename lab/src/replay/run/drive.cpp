#include "replay/run/drive.hpp"

#include "replay/run/driver.hpp"

namespace blockyard::replay {
namespace {

template <bool timed, bool locked, bool traced>
void follow(Session& session, ReplayThread& thread) {
  Driver<timed, locked, traced> driver(session, thread);
  for_each_event(
      session, thread, [&](Record & record, Slot & slot) __attribute__((always_inline)) { driver.step(record, slot); });
}

}  // namespace

void drive(Session& session, ReplayThread& thread) {
  if (session.timed) {
    session.locked ? follow<true, true, false>(session, thread) : follow<true, false, false>(session, thread);
  } else if (session.board != nullptr) {
    session.locked ? follow<false, true, true>(session, thread) : follow<false, false, true>(session, thread);
  } else {
    session.locked ? follow<false, true, false>(session, thread) : follow<false, false, false>(session, thread);
  }
}

}  // namespace blockyard::replay
