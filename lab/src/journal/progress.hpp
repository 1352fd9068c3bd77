// A long pass over a journal.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <type_traits>
#include <utility>

#include "journal/reader.hpp"

namespace blockyard::journal {

/// Called from time to time with a fraction from 0 to 1; empty when not wanted.
using Progress = std::function<void(double)>;

inline void report(const Progress& progress, const Source& source) {
  if (!progress || source.bytes_total() == 0) return;
  progress(static_cast<double>(source.bytes_read()) / static_cast<double>(source.bytes_total()));
}

/// Calls `visit(event)` for every event from here on, or until it returns false. `prefetch(event)` comes before, where
/// events lie ahead.
template <typename Visit, typename Prefetch = decltype([](const Event&) {})>
void for_each_event(Source& source, const Progress& progress, Visit visit, Prefetch prefetch = {}) {
  constexpr std::size_t ahead = 16;
  for (auto events = source.next(); !events.empty(); events = source.next()) {
    for (std::size_t i = 0; i < events.size(); ++i) {
      if (i + ahead < events.size()) prefetch(events[i + ahead]);
      if constexpr (std::is_same_v<decltype(visit(events[i])), bool>) {
        if (!visit(events[i])) return;
      } else {
        visit(events[i]);
      }
    }
    report(progress, source);
  }
}

/// Who marks frames.
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
