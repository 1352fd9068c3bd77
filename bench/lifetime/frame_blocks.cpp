#include "frame_blocks.hpp"

#include <cstddef>
#include <unordered_map>

#include "journal/reader.hpp"

namespace blockyard::bench {

namespace {

struct Seen {
  FrameBlock block;
  std::uint32_t thread;
  bool freed = false;  ///< by the same thread
};

}  // namespace

std::vector<FrameBlock> read_frame_blocks(const std::string& journal, std::uint32_t largest) {
  const auto source = journal::open(journal);
  std::vector<FrameBlock> found;
  std::vector<Seen> frame;
  std::unordered_map<std::uint64_t, std::size_t> places;  // in `frame`, by block
  std::uint64_t number = 0;
  for (auto events = source->next(); !events.empty(); events = source->next()) {
    for (const journal::Event& event : events) {
      if (number++ < source->header().preamble_events) continue;
      if (event.kind == journal::Kind::frame_mark) {
        for (const Seen& seen : frame) {
          if (seen.freed && seen.thread == event.thread) found.push_back(seen.block);
        }
        frame.clear();
        places.clear();
      }
      if (journal::takes_block(event.kind)) {
        const auto place = places.find(event.kind == journal::Kind::free ? event.block : event.old_block);
        if (place != places.end() && frame[place->second].thread == event.thread) frame[place->second].freed = true;
      }
      if (journal::gives_block(event.kind) && event.size != 0 && event.size <= largest) {
        places.emplace(event.block, frame.size());
        const std::uint32_t alignment = event.alignment == 0 ? 16 : event.alignment;
        frame.push_back({{static_cast<std::uint32_t>(event.size), alignment}, event.thread});
      }
    }
  }
  return found;
}

}  // namespace blockyard::bench
