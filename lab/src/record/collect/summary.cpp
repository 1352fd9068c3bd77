#include "record/collect/summary.hpp"

namespace blockyard::record {
namespace {

using journal::Json;

Json json_of(const JournalSummary& journal) {
  return {{"path", journal.path},         {"events", journal.events},
          {"preamble", journal.preamble}, {"allocations", journal.allocations},
          {"frees", journal.frees},       {"reallocates", journal.reallocates},
          {"frames", journal.frames},     {"threads", journal.threads},
          {"bytes", journal.bytes},       {"seconds", journal.seconds},
          {"error", journal.error}};
}

}  // namespace

void Summary::add_ended(pid_t pid, Session& session, double ns_per_stamp) {
  Json journals = Json::array();
  for (const JournalSummary& journal : session.interpreter().journals()) journals.push_back(json_of(journal));
  const Repairs& repairs = session.interpreter().repairs();
  const Control& control = session.shared().region().control();
  images_.push_back({{"pid", pid},
                     {"stacks_verified", control.stacks_verified.load()},
                     {"stacks_differing", control.stacks_differing.load()},
                     {"stacks_ended_by_us", control.stacks_ended_by_us.load()},
                     {"stacks_ended_by_them", control.stacks_ended_by_them.load()},
                     {"program", session.settings().output.header.program},
                     {"running", false},
                     {"threads", session.threads().size()},
                     {"journals", journals},
                     {"waits", session.waits()},
                     {"waited_ms", static_cast<double>(session.waited()) * ns_per_stamp * 1e-6},
                     {"threads_refused", session.shared().region().control().threads_refused.load()},
                     {"unknown_frees", repairs.unknown_frees},
                     {"missed_frees", repairs.missed_frees},
                     {"split_reallocates", repairs.split_reallocates}});
}

void Summary::add_running(pid_t pid, const std::string& program, const std::string& path, bool silent) {
  Json image = {{"pid", pid}, {"program", program}, {"running", true}, {"path", path}};
  if (silent) image["silent"] = true;
  images_.push_back(image);
}

std::string Summary::text(StampClock clock, bool fences) const {
  const Json all = {
      {"images", images_}, {"clock", clock == StampClock::cycles ? "cycles" : "monotonic"}, {"fences", fences}};
  return journal::json_text(all, -1);
}

}  // namespace blockyard::record
