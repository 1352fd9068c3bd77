// What is counted, stepped through by the tracer (tests/heap/golden/main.cpp).
#include "operations.hpp"

#include <csignal>
#include <cstdlib>

#include "blockyard/blockyard.h"
#include "loops.hpp"

namespace golden {
namespace {

// The tracer stops at each and lets it go no further.
template <class Operation>
void count(Operation&& operation) {
  std::raise(SIGUSR1);
  operation();
  std::raise(SIGUSR1);
}

}  // namespace

void run_operations() {
  static void* blocks[golden_blocks];
  // Warm: symbols are bound, the region and a chunk are there.
  temp_allocate_loop(blocks);
  temp_free_loop(blocks);
  temp_cursor_loop(blocks);
  temp_job_allocate_loop(blocks);
  temp_job_free_loop(blocks);
  by_thread_end_frame();
  count([] { temp_allocate_loop(blocks); });
  count([] { temp_allocate_sized_loop(blocks, 32); });
  count([] { temp_allocate_row_loop(blocks); });
  count([] { temp_free_loop(blocks); });
  count([] { temp_cursor_loop(blocks); });
  count([] { temp_cursor_sized_loop(blocks, 32); });
  count([] { temp_job_allocate_loop(blocks); });
  count([] { temp_job_free_loop(blocks); });
  std::_Exit(0);
}

}  // namespace golden
