/// What every adapter has, and its `init` must do.
#ifndef BLOCKYARD_ADAPTERS_SUPPORT_SETUP_HPP
#define BLOCKYARD_ADAPTERS_SUPPORT_SETUP_HPP

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "blockyard/adapter.h"

namespace blockyard::adapters {

/// What an adapter sets of by_adapter; the rest is as it is for most.
struct Described {
  const char* name;
  const char* version = "";
  uint32_t flags = 0;
  int (*init)(const by_adapter_setup* setup);
  void (*thread_start)() = nullptr;
  void* (*allocate)(size_t size) = nullptr;
  void* (*allocate_zeroed)(size_t size) = nullptr;
  void* (*allocate_aligned)(size_t alignment, size_t size) = nullptr;
  void* (*reallocate)(void* block, size_t old_size, size_t old_alignment, size_t size) = nullptr;
  void (*free)(void* block) = nullptr;
};

constexpr by_adapter described(const Described& is) {
  return {BY_ADAPTER_ABI,  is.flags, is.name,     is.version,         is.init,
          is.thread_start, nullptr,  is.allocate, is.allocate_zeroed, is.allocate_aligned,
          is.reallocate,   is.free,  nullptr};
}

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
