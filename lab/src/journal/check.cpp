#include "journal/check.hpp"

#include "journal/byj_reader.hpp"
#include "journal/walker.hpp"

namespace blockyard::journal {

CheckResult check(const std::string& path, const Progress& progress) {
  const auto source = open(path);
  const auto* byj = dynamic_cast<const ByjSource*>(source.get());
  Walker walker;
  std::vector<bool> seen;  // by site
  CheckResult result;
  for_each_event(*source, progress, [&](const Event& event) {
    try {
      walker.add(event, source->header(), source->stacks());
    } catch (const Error& error) {
      std::string sentence = path + ", " + error.what();
      if (byj != nullptr) sentence += " (in the block at byte " + std::to_string(byj->block_offset()) + ")";
      throw Error(sentence);
    }
    if (gives_block(event.kind)) ++result.blocks_given;
    if (event.kind == Kind::frame_mark) ++result.frame_marks;
    if (event.site == no_site) return;
    ++result.events_with_stack;
    if (seen.size() <= event.site) seen.resize(std::size_t{event.site} + 1);
    if (!seen[event.site]) ++result.stacks;
    seen[event.site] = true;
  });
  if (source->header().preamble_events > walker.events()) {
    throw Error(path + ": the header counts " + std::to_string(source->header().preamble_events) +
                " events of preamble; the journal has only " + std::to_string(walker.events()) + " events");
  }
  try {
    source->stacks().check();
  } catch (const Error& error) {
    throw Error(path + ": " + error.what());
  }
  result.events = walker.events();
  result.live_at_end = walker.live_blocks();
  result.threads = source->header().threads.size();
  result.has_addresses = source->header().has_addresses;
  result.allocator = source->header().allocator;
  result.notes.assign(source->notes().begin(), source->notes().end());
  return result;
}

}  // namespace blockyard::journal
