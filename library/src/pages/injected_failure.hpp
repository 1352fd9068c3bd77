// Where memory for pages may run out, a test can make it run out.
//
// Nothing in what is shipped. Compiled with BLOCKYARD_FAILURES (tests of the heap only) every place where the heap asks
// for pages or for a heap's record counts down, and the one at which the count reaches zero fails as if memory were
// exhausted. And where the checked heap asks that pages be accessible, or be not, it can be refused.
#pragma once

#if BLOCKYARD_FAILURES
#include "shared/injected_failure.hpp"
#else
namespace blockyard::pages {

inline constexpr bool failures_are_final = false;
constexpr bool acquisition_fails() { return false; }
constexpr bool access_fails() { return false; }

}  // namespace blockyard::pages
#endif
