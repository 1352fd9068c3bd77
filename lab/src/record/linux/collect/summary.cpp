#include "record/linux/collect/summary.hpp"

namespace blockyard::record {
namespace {

using journal::Json;

// A path need not be text, which JSON holds: each byte is a character.
std::string characters_of(const std::string& path) {
  std::string text;
  for (const char byte : path) {
    const auto code = static_cast<unsigned char>(byte);
    if (code < 0x80) {
      text += byte;
    } else {
      text += static_cast<char>(0xc0 | code >> 6);
      text += static_cast<char>(0x80 | (code & 0x3f));
    }
  }
  return text;
}

Json json_of(const JournalSummary& journal) {
  return {{"path", characters_of(journal.path)},
          {"events", journal.events},
          {"preamble", journal.preamble},
          {"allocations", journal.allocations},
          {"frees", journal.frees},
          {"reallocates", journal.reallocates},
          {"frames", journal.frames},
          {"threads", journal.threads},
          {"bytes", journal.bytes},
          {"seconds", journal.seconds},
          {"error", journal.error}};
}

}  // namespace

void Summary::add_ended(pid_t pid, std::uint64_t process, Session& session, double ns_per_stamp) {
  Json journals = Json::array();
  for (const JournalSummary& journal : session.interpreter().journals()) journals.push_back(json_of(journal));
  const Repairs& repairs = session.interpreter().repairs();
  const Control& control = session.shared().region().control();
  images_.push_back({{"pid", pid},
                     {"process", process},
                     {"unseen", session.unseen()},
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
                     {"threads_left", session.shared().region().control().threads_left.load()},
                     {"threads_refused", session.shared().region().control().threads_refused.load()},
                     {"was_running", session.settings().was_running},
                     {"unknown_frees", repairs.unknown_frees},
                     {"missed_frees", repairs.missed_frees},
                     {"split_reallocates", repairs.split_reallocates}});
}

void Summary::add_running(pid_t pid, const std::string& program, const std::string& path, bool silent) {
  Json image = {{"pid", pid}, {"program", program}, {"running", true}, {"path", characters_of(path)}};
  if (silent) image["silent"] = true;
  images_.push_back(image);
}

void Summary::add_unseen(pid_t pid, const std::string& program) {
  unseen_.push_back({{"pid", pid}, {"program", characters_of(program)}});
}

void Summary::rename(const std::vector<Moved>& moved) {
  for (const auto& [from, to] : moved) {
    for (Json& image : images_) {
      for (Json& journal : image["journals"]) {
        if (journal["path"] == characters_of(from)) journal["path"] = characters_of(to);
      }
    }
  }
}

std::string Summary::text(StampClock clock, bool fences) const {
  const Json all = {{"images", images_},
                    {"unseen", unseen_},
                    {"clock", clock == StampClock::cycles ? "cycles" : "monotonic"},
                    {"fences", fences}};
  return journal::json_text(all, -1);
}

}  // namespace blockyard::record
