// Which threads of a journal mark frames.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <utility>

#include "journal/event.hpp"

namespace blockyard::journal {

/// Counts the marks of each thread.
class FrameMarks {
 public:
  static constexpr std::uint32_t no_thread = std::numeric_limits<std::uint32_t>::max();

  void add(const Event& event) {
    if (event.kind == Kind::frame_mark) ++counts_[event.thread];
  }
  std::size_t threads() const { return counts_.size(); }
  /// The thread with the most marks, and how many those are; no_thread and 0 without marks.
  std::pair<std::uint32_t, std::uint64_t> most() const {
    const auto fewer = [](const auto& one, const auto& other) { return one.second < other.second; };
    const auto most = std::max_element(counts_.begin(), counts_.end(), fewer);
    return most == counts_.end() ? std::pair(no_thread, std::uint64_t{0}) : std::pair(most->first, most->second);
  }

 private:
  std::map<std::uint32_t, std::uint64_t> counts_;  ///< by thread
};

}  // namespace blockyard::journal
