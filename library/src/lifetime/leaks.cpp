// Records of followed temp job blocks, oldest first, and the report.
#include "lifetime/temp.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <mutex>

#include "base/say.hpp"
#include "base/stack.hpp"
#include "block/watch.hpp"
#include "checks/report.hpp"
#include "lifetime/thread_state.hpp"

namespace blockyard::lifetime {
namespace {

constexpr std::size_t stack_room = 24;

struct Record {
  const void* block;
  std::size_t size;
  std::uint64_t frame;  // in which it was allocated
  std::uint32_t thread;
  std::uint32_t previous;  // in the list of blocks not reported yet
  std::uint32_t next;      // in that list, or in the list of free records
  bool listed;
  std::uint8_t depth;
  std::array<void*, stack_room> stack;
};

constinit std::atomic<int> mode{-1};  // -1: as the environment says
constinit std::atomic<std::uint32_t> frames_allowed{4};
constinit std::atomic<std::uint64_t> reported{0};

// Under rare_lock.
constinit PageArray<Record> records;  // numbered from 1: 0 is none
constinit std::uint32_t free_records = 0;
constinit std::uint32_t oldest = 0;
constinit std::uint32_t newest = 0;

Record& at(std::uint32_t number) { return records[number - 1]; }

std::uint32_t take_record() {
  if (const std::uint32_t number = free_records; number != 0) {
    free_records = at(number).next;
    return number;
  }
  return records.push({}) ? static_cast<std::uint32_t>(records.count()) : 0;
}

void list(std::uint32_t number) {
  Record& record = at(number);
  record.listed = true;
  record.previous = newest;
  record.next = 0;
  (newest != 0 ? at(newest).next : oldest) = number;
  newest = number;
}

void unlist(std::uint32_t number) {
  Record& record = at(number);
  record.listed = false;
  (record.previous != 0 ? at(record.previous).next : oldest) = record.next;
  (record.next != 0 ? at(record.next).previous : newest) = record.previous;
}

void report(const Record& record, std::uint64_t frame, std::uint32_t allowed) {
  base::say(
      "blockyard: a temp job block of %zu bytes (%p) has lived for %llu frames, %u are allowed: allocated in frame "
      "%llu by thread %u\n",
      record.size, record.block, static_cast<unsigned long long>(frame - record.frame), allowed,
      static_cast<unsigned long long>(record.frame), record.thread);
  checks::say_frames(record.stack.data(), record.depth, "  at ");
}

}  // namespace

by_leaks leak_mode() {
  int now = mode.load(std::memory_order_relaxed);
  if (now < 0) {
    const int wanted = block::leaks_wanted();
    if (mode.compare_exchange_strong(now, wanted, std::memory_order_relaxed)) {
      by_jobs_followed.store(wanted != BY_LEAKS_OFF, std::memory_order_relaxed);
      now = wanted;
    }
  }
  return static_cast<by_leaks>(now);
}

std::uint32_t follow_block(const void* block, std::size_t size, std::uint64_t frame, std::uint32_t thread) {
  std::array<void*, stack_room> stack;
  std::size_t depth = 0;
  if (leak_mode() == BY_LEAKS_STACKS) {
    depth = base::capture_stack(stack.data(), stack.size());  // before the lock: it may allocate
  }
  const std::lock_guard guard(rare_lock);
  const std::uint32_t number = take_record();
  if (number != 0) {
    Record& record = at(number);
    record.block = block;
    record.size = size;
    record.frame = frame;
    record.thread = thread;
    record.depth = static_cast<std::uint8_t>(depth);
    std::copy_n(stack.begin(), depth, record.stack.begin());
    list(number);
  }
  return number;
}

void forget_block(std::uint32_t number) {
  const std::lock_guard guard(rare_lock);
  if (at(number).listed) {
    unlist(number);
  }
  at(number).next = free_records;
  free_records = number;
}

void report_old_blocks(std::uint64_t frame) {
  if (leak_mode() == BY_LEAKS_OFF) {
    return;  // blocks stay listed for when it is on again
  }
  const std::uint32_t allowed = frames_allowed.load(std::memory_order_relaxed);
  for (;;) {
    Record old;
    {
      const std::lock_guard guard(rare_lock);
      if (oldest == 0 || at(oldest).frame + allowed >= frame) {
        return;
      }
      old = at(oldest);
      unlist(oldest);
    }
    // Outside the lock: naming functions may allocate.
    reported.fetch_add(1, std::memory_order_relaxed);
    report(old, frame, allowed);
  }
}

void forget_leaks_in_child() {
  while (oldest != 0) {
    unlist(oldest);
  }
}

}  // namespace blockyard::lifetime

using namespace blockyard::lifetime;

extern "C" {

void by_leaks_set(by_leaks wanted) {
  mode.store(wanted, std::memory_order_relaxed);
  by_jobs_followed.store(wanted != BY_LEAKS_OFF, std::memory_order_relaxed);
}

uint64_t by_leaks_reported(void) { return reported.load(std::memory_order_relaxed); }

void by_temp_job_set_frames(uint32_t allowed) { frames_allowed.store(allowed, std::memory_order_relaxed); }

}  // extern "C"
