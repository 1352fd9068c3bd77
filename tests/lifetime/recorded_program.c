/* Blocks of temp, temp job and a pool, for test_recorded.py: sizes that nothing else in the process asks for. */
#include "blockyard/blockyard.h"

int main(void) {
  by_block_pool* pool = by_block_pool_create(7008, 16);
  for (int frame = 0; frame < 3; ++frame) {
    for (int i = 0; i < 10; ++i) by_lifetime_alloc(7001, 1, BY_TEMP);
    for (int i = 0; i < 5; ++i) by_lifetime_free(by_lifetime_alloc(7003, 1, BY_TEMP_JOB), BY_TEMP_JOB);
    by_block_pool_free(pool, by_block_pool_alloc(pool));
    by_frame_end(0);
  }
  by_block_pool_alloc(pool);
  by_block_pool_destroy(pool);
  return 0;
}
