#include "replay/run/drive.hpp"

#include <type_traits>

#include "replay/run/driver.hpp"
#include "replay/run/thread_routes.hpp"

namespace blockyard::replay {
namespace {

template <typename Routes, bool timed, bool locked, bool traced>
void follow(Session& session, ReplayThread& thread) {
  Driver<timed, locked, traced, Routes> driver(session, thread);
  const auto step = [&](Record & record, Slot & slot) __attribute__((always_inline)) { driver.step(record, slot); };
  if constexpr (std::is_same_v<Routes, NoRoutes>) {
    for_each_event(session, thread, step);
  } else {
    for_each_event(session, thread, step,
                   SpecialOps(driver.routes(), [&](Turn& turn, Record& record) { driver.end_frame(turn, record); }));
  }
}

template <typename Routes>
void follow(Session& session, ReplayThread& thread) {
  const bool locked = session.locked;
  if (session.timed) {
    locked ? follow<Routes, true, true, false>(session, thread) : follow<Routes, true, false, false>(session, thread);
  } else if (session.board != nullptr) {
    locked ? follow<Routes, false, true, true>(session, thread) : follow<Routes, false, false, true>(session, thread);
  } else {
    locked ? follow<Routes, false, true, false>(session, thread) : follow<Routes, false, false, false>(session, thread);
  }
}

}  // namespace

void drive(Session& session, ReplayThread& thread) {
  session.rerouting == nullptr ? follow<NoRoutes>(session, thread) : follow<ThreadRoutes>(session, thread);
}

}  // namespace blockyard::replay
