// Where memory for pages may run out, a test can make it run out.
//
// Nothing in what is shipped. Compiled with BLOCKYARD_FAILURES (tests/heap/failures only) every place where the heap
// asks for pages or for a heap's record counts down, and the one at which the count reaches zero fails as if memory
// were exhausted.
#pragma once

#if BLOCKYARD_FAILURES
#include <atomic>
#endif

namespace blockyard::heap {

#if BLOCKYARD_FAILURES
/// Acquisitions that still succeed before one fails; negative: none will.
inline std::atomic<long> acquisitions_until_failure{-1};

inline bool acquisition_fails() { return acquisitions_until_failure.fetch_sub(1, std::memory_order_relaxed) == 0; }
#else
constexpr bool acquisition_fails() { return false; }
#endif

}  // namespace blockyard::heap
