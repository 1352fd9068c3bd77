#include "replay/run/session_setup.hpp"

#include "base/clock.hpp"
#include "journal/event.hpp"
#include "replay/run/cores.hpp"
#include "replay/run/pacer.hpp"

namespace blockyard::replay {
namespace {

// Walking stops this long before an event: one page fault or short interrupt does not make the event late.
constexpr double pollute_margin_ns = 2'000;

}  // namespace

void check_pace(const RunSettings& settings, const PlanHeader& plan) {
  if (settings.pace == 0) return;
  if ((plan.flags & plan_paced) == 0) {
    throw journal::Error("this journal has no times (it was imported unpaced); replay it with --pace max");
  }
  if (static_cast<double>(plan.duration_ns) / settings.pace > 30.0 * 86'400e9) {
    throw journal::Error("at this pace the replay would take more than 30 days; choose a faster one");
  }
}

void set_up(Session& session, const RunSettings& settings) {
  session.allocator = settings.allocator.c_str();
  session.ticks_per_ns = base::ticks_per_ns();
  session.ticks_per_plan_ns = settings.pace == 0 ? 0 : session.ticks_per_ns / settings.pace;
  session.sleep_lead = session.ticks(sleep_lead_ns);
  session.touch = settings.touch;
  session.timed = !settings.untimed && !settings.verify && !settings.traced;
  session.verify = settings.verify;
  session.in_order = settings.in_order;
  if (session.in_order) give_cores(session.threads);
}

void set_up_causes(Session& session, const RunSettings& settings, const Floors& floors) {
  const bool wanted = session.timed && settings.causes_above_ns != 0;
  session.causes = {.source = wanted ? settings.cause_source : CauseSource::off,
                    .above_ns = settings.causes_above_ns,
                    .ticks_per_ns = session.ticks_per_ns,
                    .floor_call = floors.call,
                    .floor_touch = floors.touch,
                    .shortest_fault_ns = shortest_fault_ns(session.ticks_per_ns)};
}

void set_up_polluters(Session& session, const RunMemory& memory) {
  for (ReplayThread& thread : session.threads) {
    thread.polluter = Polluter(memory.polluted(), session.ticks(pollute_margin_ns));
  }
}

}  // namespace blockyard::replay
