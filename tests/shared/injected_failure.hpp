// A failure at a place that a test names (library/src/pages/injected_failure.hpp).
#pragma once

#include <atomic>

namespace blockyard::pages {

/// Acquisitions that still succeed before one fails; negative: none will.
inline std::atomic<long> acquisitions_until_failure{-1};

/// A failed acquisition is not tried again in other ways, which would hide it from who asked.
inline constexpr bool failures_are_final = true;

inline bool acquisition_fails() { return acquisitions_until_failure.fetch_sub(1, std::memory_order_relaxed) == 0; }

/// Whether each change of what may be accessed is refused, as where a process has as many mappings as it can.
inline std::atomic<bool> access_is_refused{false};

inline bool access_fails() { return access_is_refused.load(std::memory_order_relaxed); }

}  // namespace blockyard::pages
