// Runs a test on a new thread, whose temp region no other test has used.
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <thread>

#include "blockyard/lifetime.hpp"

template <class Body>
void on_a_new_thread(Body&& body) {
  std::thread(body).join();
}

inline std::byte* bytes(void* block) { return static_cast<std::byte*>(block); }

/// The region has no room for a byte more than these.
inline void expect_the_region_ends(const std::byte* first, std::ptrdiff_t size) {
  const std::byte* const beyond = bytes(blockyard::temp_allocate(1, 1));
  EXPECT_FALSE(beyond >= first && beyond <= first + size) << "the region is larger than " << size << " bytes";
}

/// Ends a frame that needed 300 blocks of 16 bytes: the region has room for them then, and for no more.
inline void expect_room_for_300_blocks() {
  by_thread_end_frame();
  std::byte* const first = bytes(blockyard::temp_allocate(16, 16));
  for (int i = 1; i < 300; ++i) {
    ASSERT_EQ(bytes(blockyard::temp_allocate(16, 16)), first + 16 * i);
  }
  expect_the_region_ends(first, 300 * 16);
}
