/// What every adapter's `init` must do.
#ifndef BLOCKYARD_ADAPTERS_SUPPORT_SETUP_HPP
#define BLOCKYARD_ADAPTERS_SUPPORT_SETUP_HPP

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "blockyard/adapter.h"

namespace blockyard::adapters {

/// Writes `sentence` into setup.error, cut to its size, and returns 1: `return fail(setup, "...")`.
int fail(const by_adapter_setup& setup, std::string_view sentence);

/// Checks the caller's ABI version; 0 or the result of fail().
int check_abi(const by_adapter_setup& setup);

/// The value of `key` in setup.options ("key=value,key=value").
std::optional<std::string> option(const by_adapter_setup& setup, std::string_view key);

/// As option(), a count of bytes: decimal, or `max` for the highest. Nothing when absent or not a number.
std::optional<uint64_t> bytes_option(const by_adapter_setup& setup, std::string_view key);

/// Bytes an allocator needs for the journal's peak: what was asked for, a quarter for size classes and fragmentation,
/// and 32 per block for headers. Every prefaulted variant populates this much.
uint64_t bytes_for_peak(const by_adapter_setup& setup);

}  // namespace blockyard::adapters
#endif
