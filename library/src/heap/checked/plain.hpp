// The heap without checks, as the checked one calls it (plain_names.hpp).
#pragma once

#include <cstddef>

#include "blockyard/heap.h"

extern "C" {
void by_plain_free(void* block);
void* by_plain_aligned_alloc(std::size_t alignment, std::size_t size);
std::size_t by_plain_usable_size(const void* block);
void by_plain_arena_destroy(by_arena* heap);
void* by_plain_arena_aligned_alloc(by_arena* heap, std::size_t alignment, std::size_t size);
const char* by_plain_check(void);
}
