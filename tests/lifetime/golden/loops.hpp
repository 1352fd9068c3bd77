#pragma once

#include <cstddef>

#include "blockyard/detail/visibility.h"

inline constexpr std::size_t golden_blocks = 100;  // a multiple of four

BY_API void temp_allocate_loop(void** blocks);
BY_API void temp_allocate_sized_loop(void** blocks, std::size_t size);
BY_API void temp_allocate_row_loop(void** blocks);
BY_API void temp_free_loop(void** blocks);
BY_API void temp_cursor_loop(void** blocks);
BY_API void temp_cursor_sized_loop(void** blocks, std::size_t size);
BY_API void temp_job_allocate_loop(void** blocks);
BY_API void temp_job_free_loop(void** blocks);
