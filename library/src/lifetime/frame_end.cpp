// by_frame_end: the end of the program's frame.
#include "blockyard/frame.h"
#include "blockyard/heap.h"
#include "lifetime/leaks.hpp"
#include "lifetime/temp_job.hpp"

extern "C" void by_frame_end(uint64_t budget_ns) {
  by_thread_end_frame();
  blockyard::lifetime::report_old_blocks(blockyard::lifetime::next_job_frame());
  by_heap_frame_end(budget_ns);
  by_frame_mark();
}
