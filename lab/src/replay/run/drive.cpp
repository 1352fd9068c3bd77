#include "replay/run/drive.hpp"

#include <type_traits>

#include "replay/run/burst.hpp"
#include "replay/run/driver.hpp"
#include "replay/run/thread_routes.hpp"

namespace blockyard::replay {
namespace {

template <typename Routes, bool timed, bool locked, bool traced>
void follow(Session& session, ReplayThread& thread) {
  Driver<timed, locked, traced, Routes> driver(session, thread);
  const auto step = [&](Record & record, Slot & slot) __attribute__((always_inline)) { driver.step(record, slot); };
  using OneTurn = std::conditional_t<timed || traced, Turn, BurstTurn>;
  if constexpr (std::is_same_v<Routes, NoRoutes>) {
    for_each_event<OneTurn>(session, thread, step);
  } else {
    const auto end_frame = [&](auto& turn, Record& record) { driver.end_frame(turn, record); };
    for_each_event<OneTurn>(session, thread, step, SpecialOps(driver.routes(), end_frame));
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
