// Where memory for pages may run out, a test can make it run out.
//
// Nothing in what is shipped. Compiled with BLOCKYARD_FAILURES (tests of the heap only) every place where the heap asks
// for pages or for a heap's record counts down, and the one at which the count reaches zero fails as if memory were
// exhausted. And where the checked heap asks that pages be accessible, or be not, it can be refused.
#pragma once

#if BLOCKYARD_FAILURES
#include <atomic>
#endif

namespace blockyard::heap {

#if BLOCKYARD_FAILURES
/// Acquisitions that still succeed before one fails; negative: none will.
inline std::atomic<long> acquisitions_until_failure{-1};

/// A failed acquisition is not tried again in other ways, which would hide it from who asked.
inline constexpr bool failures_are_final = true;

inline bool acquisition_fails() { return acquisitions_until_failure.fetch_sub(1, std::memory_order_relaxed) == 0; }

/// Whether each change of what may be accessed is refused, as where a process has as many mappings as it can.
inline std::atomic<bool> access_is_refused{false};

inline bool access_fails() { return access_is_refused.load(std::memory_order_relaxed); }
#else
inline constexpr bool failures_are_final = false;
constexpr bool acquisition_fails() { return false; }
constexpr bool access_fails() { return false; }
#endif

}  // namespace blockyard::heap
