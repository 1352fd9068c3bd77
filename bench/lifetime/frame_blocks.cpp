#include "frame_blocks.hpp"

#include <unordered_map>
#include <utility>

#include "journal/reader.hpp"

namespace blockyard::bench {

namespace {

constexpr std::uint32_t malloc_alignment = 16;

/// One block's allocation or its free; a reallocate is both.
struct Half {
  std::uint64_t block;
  std::uint64_t size;  ///< of an allocation
  std::uint32_t alignment;
  std::uint32_t thread;
  bool frees;
};

class Gatherer {
 public:
  explicit Gatherer(std::uint32_t largest) : largest_(largest) {}

  void add_preamble(const Half& half) { add_other(half, &found_.alive); }
  void add(const Half& half) { frame_.push_back(half); }
  void end_frame(std::uint32_t thread);
  FrameBlocks take() { return std::move(found_); }

 private:
  void add_other(const Half& half, std::vector<std::uint32_t>* alive);
  [[nodiscard]] bool fits(const Half& half, std::uint32_t thread) const {
    return half.thread == thread && half.size != 0 && half.size <= largest_;
  }

  std::uint32_t largest_;
  FrameBlocks found_;
  std::vector<Half> frame_;
  std::unordered_map<std::uint64_t, std::uint32_t> others_;  // by the journal's number of the block
  std::uint32_t frees_ = 0;
};

void Gatherer::add_other(const Half& half, std::vector<std::uint32_t>* alive) {
  if (half.frees) {
    const auto other = others_.find(half.block);
    if (other != others_.end()) {
      found_.calls.push_back({found_.taken.size(), other->second, true});
    }
    return;
  }
  const auto number = static_cast<std::uint32_t>(found_.others.size());
  others_.emplace(half.block, number);
  found_.others.push_back({half.size, half.alignment});
  if (alive != nullptr) {
    alive->push_back(number);
  } else {
    found_.calls.push_back({found_.taken.size(), number, false});
  }
}

void Gatherer::end_frame(std::uint32_t thread) {
  std::unordered_map<std::uint64_t, bool> within;  // freed in this frame?
  for (const Half& half : frame_) {
    if (!half.frees && fits(half, thread)) {
      within.emplace(half.block, false);
    } else if (const auto seen = within.find(half.block); half.frees && seen != within.end()) {
      seen->second = half.thread == thread;
    }
  }
  std::unordered_map<std::uint64_t, std::size_t> places;  // in `taken`
  for (const Half& half : frame_) {
    const auto seen = within.find(half.block);
    if (seen == within.end() || !seen->second) {
      add_other(half, nullptr);
    } else if (half.frees) {
      found_.freed[places.at(half.block)] = frees_++;
    } else {
      places.emplace(half.block, found_.taken.size());
      found_.taken.push_back({static_cast<std::uint32_t>(half.size), half.alignment});
      found_.freed.push_back(0);
    }
  }
  frame_.clear();
}

}  // namespace

FrameBlocks read_frame_blocks(const std::string& journal, std::uint32_t largest) {
  const auto source = journal::open(journal);
  Gatherer gatherer(largest);
  std::uint64_t number = 0;
  for (auto events = source->next(); !events.empty(); events = source->next()) {
    for (const journal::Event& event : events) {
      const bool preamble = number++ < source->header().preamble_events;
      const auto add = [&](const Half& half) { preamble ? gatherer.add_preamble(half) : gatherer.add(half); };
      if (event.kind == journal::Kind::frame_mark) {
        gatherer.end_frame(event.thread);
      }
      if (journal::takes_block(event.kind)) {
        add({event.kind == journal::Kind::free ? event.block : event.old_block, 0, 0, event.thread, true});
      }
      if (journal::gives_block(event.kind)) {
        add({event.block, event.size, event.alignment == 0 ? malloc_alignment : event.alignment, event.thread, false});
      }
    }
  }
  return gatherer.take();
}

}  // namespace blockyard::bench
