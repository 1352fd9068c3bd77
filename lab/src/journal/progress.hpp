// A long pass over a journal.
#pragma once

#include <cstdint>
#include <functional>
#include <type_traits>

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

}  // namespace blockyard::journal
