// The operations whose instructions are counted, by name: each is a loop over 100 blocks of 32 bytes, as a program's
// own code has it, with a call around it.
#pragma once

#include <array>

namespace golden {

inline constexpr std::array names{
    "temp-allocate",        // temp_allocate(32)
    "temp-allocate-sized",  // of a size that the compiler does not know
    "temp-allocate-row",    // four calls in a row
    "temp-free",            // temp_deallocate(block), in the order of the allocations
    "temp-cursor",          // a temp_cursor's whole life
    "temp-cursor-sized",    // of a size that the compiler does not know
    "temp-job-allocate",    // temp_job_allocate(32)
    "temp-job-free",        // temp_job_deallocate(block), by the thread that allocated
};

/// Makes every call in this order, each between two SIGUSR1 to itself. Never returns.
[[noreturn]] void run_operations();

}  // namespace golden
