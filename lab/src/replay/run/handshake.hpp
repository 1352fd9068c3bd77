// How the threads of a run wait for each other while the clock does not run: asleep in the kernel.
#pragma once

#include <atomic>
#include <cstdint>

namespace blockyard::replay {

/// Waits for a value that another thread will announce.
inline void await(std::atomic<std::uint32_t>& value, std::uint32_t wanted) {
  for (std::uint32_t now = value.load(std::memory_order_acquire); now != wanted;
       now = value.load(std::memory_order_acquire)) {
    value.wait(now, std::memory_order_acquire);
  }
}

inline void announce(std::atomic<std::uint32_t>& value, std::uint32_t to) {
  value.store(to, std::memory_order_release);
  value.notify_all();
}

}  // namespace blockyard::replay
