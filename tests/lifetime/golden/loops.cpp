// The inline fast paths, in a library of their own, so that the tracer knows their instructions by their address. What
// they call (slow paths) lies in another and is not counted.
#include "loops.hpp"

#include "blockyard/lifetime.hpp"

using namespace blockyard;

void temp_allocate_loop(void** blocks) {
  for (std::size_t i = 0; i < golden_blocks; ++i) {
    blocks[i] = temp_allocate(32);
  }
}
void temp_allocate_sized_loop(void** blocks, std::size_t size) {
  for (std::size_t i = 0; i < golden_blocks; ++i) {
    blocks[i] = temp_allocate(size);
  }
}
void temp_allocate_row_loop(void** blocks) {
  for (std::size_t i = 0; i < golden_blocks; i += 4) {
    blocks[i] = temp_allocate(32);
    blocks[i + 1] = temp_allocate(32);
    blocks[i + 2] = temp_allocate(32);
    blocks[i + 3] = temp_allocate(32);
  }
}
void temp_free_loop(void** blocks) {
  for (std::size_t i = 0; i < golden_blocks; ++i) {
    temp_deallocate(blocks[i]);
  }
}
void temp_cursor_loop(void** blocks) {
  temp_cursor cursor;
  for (std::size_t i = 0; i < golden_blocks; ++i) {
    blocks[i] = cursor.allocate(32);
  }
}
void temp_cursor_sized_loop(void** blocks, std::size_t size) {
  temp_cursor cursor;
  for (std::size_t i = 0; i < golden_blocks; ++i) {
    blocks[i] = cursor.allocate(size);
  }
}
void temp_job_allocate_loop(void** blocks) {
  for (std::size_t i = 0; i < golden_blocks; ++i) {
    blocks[i] = temp_job_allocate(32);
  }
}
void temp_job_free_loop(void** blocks) {
  for (std::size_t i = 0; i < golden_blocks; ++i) {
    temp_job_deallocate(blocks[i]);
  }
}
